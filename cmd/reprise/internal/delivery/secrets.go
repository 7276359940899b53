package delivery

import (
	"fmt"
	"os"
	"strings"
)

// Secrets reads secrets from the environment. It removes what it reads, so that the
// commands of --exec do not inherit it, and remembers it for the next reading.
type Secrets struct{ taken map[string]string }

// Variable returns the value of an environment variable, empty if it is not set.
func (s *Secrets) Variable(name string) (string, error) {
	if value, taken := s.taken[name]; taken {
		return value, nil
	}
	value := os.Getenv(name)
	if err := os.Unsetenv(name); err != nil {
		return "", err
	}
	if s.taken == nil {
		s.taken = make(map[string]string)
	}
	s.taken[name] = value
	return value, nil
}

// Read returns the secret of a setting at a place, after it has checked that it is one.
func (s *Secrets) Read(setting, place string) (string, error) {
	if err := checkPlace(setting, place); err != nil {
		return "", err
	}
	return s.at(setting, place)
}

func checkPlace(setting, place string) error {
	if kind, name, _ := strings.Cut(place, ":"); name == "" || kind != "file" && kind != "env" {
		return wrong(setting, " is not the place of a secret: pass file:PATH or env:VARIABLE, not the secret itself")
	}
	return nil
}

// at returns the secret at a place, file:PATH or env:VARIABLE, without space around it.
func (s *Secrets) at(setting, place string) (string, error) {
	kind, name, _ := strings.Cut(place, ":")
	var secret string
	if kind == "env" {
		value, err := s.Variable(name)
		if err != nil {
			return "", err
		}
		secret = value
	} else {
		text, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("--%s: %w", setting, err)
		}
		secret = string(text)
	}
	if secret = strings.TrimSpace(secret); secret == "" {
		return "", wrong(setting, " is %s, which is empty or not set: put the secret there", place)
	}
	return secret, nil
}
