package sqsserver

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// formatVersion is the version of the records as a whole: which kinds there are, and their keys. A
// change of an encoding raises it together with recordVersion.
const formatVersion = recordVersion

// converting is the value of versionKey while records of the version before are converted. The
// version before refuses it, since records of both versions are there, and this one goes on.
var converting = []byte{formatVersion, previousVersion}

// maxConverted is about how many bytes are converted in one batch.
const maxConverted = 1 << 20

// ownKinds are the kinds of keys whose values have the version of their encoding.
var ownKinds = []byte{sequenceKey, nameKey, queueKey, movesKey, acceptanceKey, messageKey, bodyKey}

// upgrade converts the records of the version before this one, if the journal has any, so that the
// next version has to read this one only. The error is about records that this program cannot read.
//
// Each batch converts some records, and each record says its version: whenever a crash comes, those
// that are left are converted by the next start.
func upgrade(journal Journal, logger *slog.Logger) error {
	from, err := readFormat(journal)
	if err != nil || from == formatVersion {
		return err
	}
	var size int64
	err = eachOlder(journal, func(key, value []byte) error {
		size += int64(len(key) + len(value))
		return nil
	})
	if err != nil {
		return err
	}
	if checker, ok := journal.(RoomChecker); ok {
		if err := checker.CheckRoom(size); err != nil {
			return err
		}
	}
	logger.Info("converting the journal's records; versions before this one cannot open it from now on", "from_format", from, "format", formatVersion, "bytes", size)
	var b Batch
	b.Set([]byte{versionKey}, converting)
	if err := journal.Commit(&b, true); err != nil {
		return err
	}
	b.Reset()
	err = eachOlder(journal, func(key, value []byte) error {
		if err := convert(&b, key, value); err != nil || b.Size() < maxConverted {
			return err
		}
		defer b.Reset()
		return journal.Commit(&b, false)
	})
	if err != nil {
		return err
	}
	b.Set([]byte{versionKey}, []byte{formatVersion})
	if err := journal.Commit(&b, true); err != nil {
		return err
	}
	logger.Info("the journal's records are converted", "format", formatVersion)
	return nil
}

// readFormat returns the format of the records: this one, also of an empty journal, or the one
// before, also if its conversion has not ended.
func readFormat(journal Journal) (byte, error) {
	for version, err := range journal.Get([][]byte{{versionKey}}) {
		switch {
		case errors.Is(err, ErrNotInJournal):
		case err != nil:
			return 0, err
		case len(version) == 1 && (version[0] == formatVersion || version[0] == previousVersion):
			return version[0], nil
		case slices.Equal(version, converting):
			return previousVersion, nil
		default:
			return 0, fmt.Errorf("its records have the format %v, this program reads formats %d and %d: "+
				"open it with the version that wrote it, or go on from a backup that this version or the one before it made", version, previousVersion, formatVersion)
		}
	}
	return formatVersion, journal.Scan(nil, func(key, _ []byte) error {
		return fmt.Errorf("it has records, such as %q, but none that states their format: it is damaged, or of another program", key)
	})
}

// eachOlder calls f for the records that have the version before this one.
func eachOlder(journal Journal, f func(key, value []byte) error) error {
	for _, kind := range ownKinds {
		err := journal.Scan([]byte{kind}, func(key, value []byte) error {
			if len(value) == 0 || value[0] != previousVersion {
				return nil // what is of no known version is found when it is read
			}
			return f(key, value)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// convert adds the changes to b that give a record this version.
func convert(b *Batch, key, value []byte) error {
	if key[0] == bodyKey {
		c, err := decodeContent(value)
		if err != nil {
			return fmt.Errorf("record %q cannot be understood: %w", key, err)
		}
		// A journal may rely on it that a body is set once and deleted once.
		b.DeleteOnce(key)
		b.Set(key, appendContent(nil, c))
		return nil
	}
	value = slices.Clone(value) // of the other kinds nothing else has changed
	value[0] = recordVersion
	b.Set(key, value)
	return nil
}
