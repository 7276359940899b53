package cli

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
)

// signingFlags are the flags of every command that reads or writes what consumers sign.
type signingFlags struct{ file string }

// signingKeysVariable has the keys where no file is named. The command line can be read
// by everybody on the machine.
const signingKeysVariable = "REPRISE_SIGNING_KEYS"

const aboutSigning = `--signing-key-file names a file of keys, a line ID:SECRET each, of which the first
signs what consumers write into messages, and all are accepted. Without keys
whoever may send to the queue can write a history or a story: see
docs/retries.md.`

func (f *signingFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "signing-key-file", "", "`file` with the keys that sign histories and stories, a line ID:SECRET each (default those in "+signingKeysVariable+"; none: nothing is signed)")
}

// keys are the signing keys; none if there are none. What is in the environment is taken
// out of it, so that the commands of --exec do not inherit it.
func (f *signingFlags) keys(logger *slog.Logger) ([]reprise.SigningKey, error) {
	text, source := os.Getenv(signingKeysVariable), signingKeysVariable
	if err := os.Unsetenv(signingKeysVariable); err != nil {
		return nil, err
	}
	if f.file != "" {
		content, err := os.ReadFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--signing-key-file: %w", err)
		}
		if about, err := os.Stat(f.file); err == nil && runtime.GOOS != "windows" && about.Mode().Perm()&0o004 != 0 {
			logger.Warn("every user of this machine can read the signing keys, and write what they sign", "file", f.file, "remedy", "chmod o-r")
		}
		text, source = string(content), "--signing-key-file "+f.file
	}
	if text == "" && f.file == "" {
		return nil, nil
	}
	keys, err := reprise.ParseSigningKeys(text)
	if err != nil {
		return nil, usage(fmt.Errorf("%s: %w", source, err))
	}
	return keys, nil
}
