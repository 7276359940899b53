//go:build unix

package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
)

const (
	others      = 0o077 // the permissions of the group and of everybody else
	worldWrites = 0o002
)

// checkOwners checks which other users could use the journal's directory, before anything is
// written there. It refuses what an attack, or a similar mistake, would make: a symbolic link by
// another user in a directory that everybody may write to, and a directory that belongs to
// another user. If the group or everybody may read or write the directory, it only warns:
// containers mount volumes with such modes.
func checkOwners(o Options) error {
	if !onDisk(o.FS) || o.ReadOnly {
		return nil
	}
	return auditDirectory(o.Logger, o.Dir, uint32(os.Getuid()))
}

// auditDirectory is checkOwners for the user uid.
func auditDirectory(log *slog.Logger, dir string, uid uint32) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := checkLinks(path, uid); err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	parent, err := os.Stat(filepath.Dir(real))
	if err != nil {
		return err
	}
	mode, owner := info.Mode(), ownerOf(info)
	switch {
	case owner == uid || owner == 0:
	case uid != 0 || parent.Mode()&worldWrites != 0:
		return fmt.Errorf("journal %s: the directory belongs to the user %d, who could replace what is in it, and this program runs as %d: "+
			"run it as that user, chown it, or name a directory of your own", dir, owner, uid)
	default: // the superuser with the volume of a container
		log.Warn("the data directory belongs to another user, who can replace what is in it", "directory", dir, "owner", owner, "remedy", fmt.Sprintf("chown %d %s", uid, dir))
	}
	if mode.Perm()&others != 0 {
		what := "other users can list the data directory"
		if mode.Perm()&0o022 != 0 {
			what = "other users can remove and replace what is in the data directory"
		}
		log.Warn(what, "directory", dir, "mode", fmt.Sprintf("%04o", mode.Perm()), "remedy", "chmod 700 "+dir)
	}
	for at := filepath.Dir(real); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode()&worldWrites != 0 && info.Mode()&fs.ModeSticky == 0 {
			log.Warn("every user can replace the data directory, by renaming a directory that it is in", "directory", at, "mode", fmt.Sprintf("%04o", info.Mode().Perm()), "remedy", "chmod o-w "+at)
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

// checkLinks refuses a symbolic link on the way to path that neither the user nor the superuser
// has made, in a directory that everybody may write to. Linux refuses such links only where
// fs.protected_symlinks is set.
func checkLinks(path string, uid uint32) error {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		link, err := os.Lstat(at)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if link.Mode().Type() != fs.ModeSymlink || ownerOf(link) == uid || ownerOf(link) == 0 {
			continue
		}
		in, err := os.Stat(filepath.Dir(at))
		if err != nil {
			return err
		}
		if in.Mode()&worldWrites != 0 {
			return fmt.Errorf("journal %s: %s is a symbolic link that the user %d has put where everybody may write: "+
				"name the directory itself", path, at, ownerOf(link))
		}
	}
	return nil
}

// tighten takes the files of the journal away from other users. Earlier versions wrote them with
// the modes of the umask.
func tighten(o Options) error {
	if !onDisk(o.FS) || o.ReadOnly {
		return nil
	}
	entries, err := os.ReadDir(o.Dir)
	if err != nil {
		return describe(o.Dir, err)
	}
	files := 0
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&others == 0 {
			continue // the file has just been removed
		}
		if err := os.Chmod(filepath.Join(o.Dir, entry.Name()), fileMode); err != nil {
			o.Logger.Warn("other users can use a file of the data directory", "error", err, "remedy", "chmod 600 "+filepath.Join(o.Dir, entry.Name()))
			continue
		}
		files++
	}
	if files > 0 {
		o.Logger.Info("other users had access to files of the data directory, and have it no more", "directory", o.Dir, "files", files, "mode", "0600")
	}
	return nil
}

func ownerOf(info fs.FileInfo) uint32 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Uid
	}
	return 0
}
