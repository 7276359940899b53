package delivery

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise"
)

// Signing is the setting of the keys that sign the histories and stories that consumers
// write into messages.
type Signing struct{ file string }

// signingKeysVariable has the keys if no file is named. A flag for them would be unsafe:
// everybody on the machine can read command lines.
const signingKeysVariable = "REPRISE_SIGNING_KEYS"

// AboutSigning describes the setting.
const AboutSigning = `--signing-key-file names a file of keys, one line ID:SECRET each. Consumers sign the
histories and stories that they write into messages with the first key, and accept
those signed with any of them. Without keys anybody who may send to the queue can
forge them: see docs/retries.md.`

// Register adds the setting to flags.
func (f *Signing) Register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "signing-key-file", "", "`file` with the keys that sign histories and stories, one line ID:SECRET each (default those in "+signingKeysVariable+"; none: nothing is signed)")
}

// Keys returns the signing keys, nil if none are configured.
func (f *Signing) Keys(secrets *Secrets, logger *slog.Logger) ([]reprise.SigningKey, error) {
	text, err := secrets.Variable(signingKeysVariable)
	if err != nil {
		return nil, err
	}
	source := signingKeysVariable
	if f.file != "" {
		content, err := os.ReadFile(f.file)
		if err != nil {
			return nil, fmt.Errorf("--signing-key-file: %w", err)
		}
		if about, err := os.Stat(f.file); err == nil && runtime.GOOS != "windows" && about.Mode().Perm()&0o004 != 0 {
			logger.Warn("every user of this machine can read the signing keys, and forge what they sign", "file", f.file, "remedy", "chmod o-r")
		}
		text, source = string(content), f.file
	}
	if text == "" && f.file == "" {
		return nil, nil
	}
	keys, err := reprise.ParseSigningKeys(text)
	if err != nil {
		return nil, wrong("signing-key-file", ": %s: %w", source, err)
	}
	return keys, nil
}
