package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// packed is a file of an archive.
type packed struct {
	name string // with slashes
	from string // the file's path
	mode fs.FileMode
}

// packArchives writes the archive of each program: with its licences and manual, and on
// Linux with units for systemd.
func (r *release) packArchives(context.Context) error {
	for _, t := range r.targets {
		name := r.archiveName(t)
		files, err := r.contents(t)
		if err != nil {
			return err
		}
		for i := range files {
			files[i].name = path.Join(name, files[i].name)
		}
		if t.os == "windows" {
			err = writeArchive(filepath.Join(r.out, name+".zip"), files, r.made, packZip)
		} else {
			err = writeArchive(filepath.Join(r.out, name+".tar.gz"), files, r.made, packTar)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// contents returns what the archive of a target has.
func (r *release) contents(t target) ([]packed, error) {
	files := []packed{{t.exe(), r.programs[t], 0o755}}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		files = append(files, packed{name, filepath.Join(r.source, name), 0o644})
	}
	folders := map[string]string{
		"licences":    r.licences[t.os],
		"completions": filepath.Join(r.manual, "completions"),
	}
	if t.os != "windows" {
		folders["man/man1"] = filepath.Join(r.manual, "man1")
	}
	if t.os == "linux" {
		folders["systemd"] = filepath.Join(r.source, "deploy", "systemd")
	}
	for to, from := range folders {
		found, err := filesOf(from)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			f.name = path.Join(to, f.name)
			files = append(files, f)
		}
	}
	return files, nil
}

// filesOf returns the files below a directory.
func filesOf(dir string) (files []packed, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		files = append(files, packed{filepath.ToSlash(relative), name, 0o644})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s has no files", dir)
	}
	return files, err
}

// writeArchive writes files with the function pack. The same files at the same time give
// the same bytes, on each machine.
func writeArchive(name string, files []packed, made time.Time, pack func(io.Writer, []packed, time.Time) error) (err error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b packed) int { return cmp.Compare(a.name, b.name) })
	for i, f := range files[1:] {
		if f.name == files[i].name {
			return fmt.Errorf("two files are called %s: %s and %s", f.name, files[i].from, f.from)
		}
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return pack(file, files, made.UTC().Truncate(time.Second))
}

func packTar(w io.Writer, files []packed, made time.Time) error {
	compressed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, f := range files {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Name: f.name, Size: int64(len(text)), Mode: int64(f.mode), ModTime: made, Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

func packZip(w io.Writer, files []packed, made time.Time) error {
	archive := zip.NewWriter(w)
	for _, f := range files {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: made}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(text); err != nil {
			return err
		}
	}
	return archive.Close()
}
