// Package config gives every flag, save those that can only be typed, a default from the environment (GANGCTL_IMAGE for --image) and from the user's settings
// file, at the top level or in a profile. A flag wins over the environment, that over the profile, that over the rest of the
// file, and that over what is built in.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/viper"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/localfile"
)

const (
	profileKey  = "profile"
	profilesKey = "profiles"
	// separator parts keys of viper. Flag names and profile names hold no such characters; profile names may hold dots.
	separator = "::"
)

// Path is where the settings are: $XDG_CONFIG_HOME/gangctl/config.yaml, with the fallback that the XDG Base Directory
// Specification names, ~/.config. It is empty without either: what the current directory holds may be anybody's.
func Path(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) { // the specification ignores relative paths
		return filepath.Join(dir, "gangctl", "config.yaml")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "gangctl", "config.yaml")
	}
	return ""
}

// Name is how messages name the settings file at path, also where there can be none.
func Name(path string) string { return cmp.Or(path, "$XDG_CONFIG_HOME/gangctl/config.yaml") }

// Locate is path, or an error that there can be no settings file.
func Locate(path string) (string, error) {
	if path == "" {
		return "", failure.Errorf("there is no settings file: neither HOME nor XDG_CONFIG_HOME is set to an absolute path").WithHint("set one of them")
	}
	return path, nil
}

// Config are the settings of one run.
type Config struct {
	path    string
	getenv  func(string) string
	file    *viper.Viper
	profile string
	// applied is where the values of flags come from that were not typed.
	applied map[string]string
}

// Load reads the file at path, which need not exist, and selects a profile: the argument (from --profile) or
// GANGCTL_PROFILE or the file's own `profile`.
func Load(path string, getenv func(string) string, profile string) (*Config, error) {
	c := newConfig(path, getenv)
	if err := c.read(); err != nil {
		return nil, err
	}
	source := "--profile"
	if profile == "" {
		profile, source = getenv("GANGCTL_PROFILE"), "GANGCTL_PROFILE"
	}
	if profile == "" {
		profile, source = c.file.GetString(profileKey), path
	}
	profile = strings.ToLower(profile) // as viper does to the keys of the file
	if profile != "" && !slices.Contains(c.Profiles(), profile) {
		return nil, failure.Usagef("profile %q (from %s) is not in %s", profile, source, Name(path)).WithHint("%s", c.profileHint())
	}
	c.profile = profile
	return c, nil
}

// Read reads the file at path, which need not exist, and selects no profile.
func Read(path string) (*Config, error) {
	c := newConfig(path, func(string) string { return "" })
	return c, c.read()
}

func newConfig(path string, getenv func(string) string) *Config {
	return &Config{path: path, getenv: getenv, file: viper.NewWithOptions(viper.KeyDelimiter(separator)), applied: map[string]string{}}
}

// Profile is the name of the profile that counts, or "".
func (c *Config) Profile() string { return c.profile }

// Profiles are the names of the profiles in the file, sorted, in lower case.
func (c *Config) Profiles() []string {
	names := []string{}
	for name := range c.file.GetStringMap(profilesKey) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Held are the keys in the file, at the top level or in a profile, sorted.
func (c *Config) Held(profile string) []string {
	held := c.file.AllSettings()
	if profile != "" {
		held = c.file.GetStringMap(profilesKey + separator + profile)
	}
	names := []string{}
	for name := range held {
		if name != profilesKey {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *Config) profileHint() string {
	names := c.Profiles()
	if len(names) == 0 {
		return "add it under `profiles:` in the file"
	}
	return "the profiles are: " + strings.Join(names, ", ")
}

var yamlLine = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?(line \d+: )?`)

// maxFile is how large a settings file may be, in bytes.
const maxFile = 1 << 20

// readFile reads a settings file; one that is not there is empty.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	in, err := localfile.Open(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var content []byte
	if err == nil {
		defer in.Close()
		if content, err = localfile.Text(in, maxFile); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		return nil, failure.Errorf("read settings: %w", err).WithHint("correct the file, or move it out of the way")
	}
	return content, nil
}

func (c *Config) read() error {
	content, err := readFile(c.path)
	if err != nil {
		return err
	}
	return c.parse(content)
}

func (c *Config) parse(content []byte) error {
	c.file.SetConfigType("yaml")
	if err := c.file.ReadConfig(bytes.NewReader(content)); err != nil {
		cause := err
		for inner := errors.Unwrap(cause); inner != nil; inner = errors.Unwrap(cause) {
			cause = inner
		}
		// `yaml: line 3: mapping values are not allowed` becomes `FILE: line 3: mapping …`
		where := yamlLine.FindStringSubmatch(cause.Error())
		text := yamlLine.ReplaceAllString(cause.Error(), "")
		line := ""
		if where != nil {
			line = where[1]
		}
		return failure.Errorf("settings %s: %s%s", c.path, line, text).WithHint("correct the file, or move it out of the way")
	}
	if raw := c.file.Get(profilesKey); raw != nil {
		if _, ok := raw.(map[string]any); !ok {
			return failure.Errorf("settings %s: %s: must map names to settings", c.path, profilesKey)
		}
	}
	return nil
}

// variable is the environment variable of a flag.
func variable(flag string) string {
	return "GANGCTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// lookup finds the value for a flag, and where it comes from.
func (c *Config) lookup(flag string) (value any, source string) {
	name := variable(flag)
	if v := c.getenv(name); v != "" {
		return v, name
	}
	if c.profile != "" {
		if v := c.file.Get(strings.Join([]string{profilesKey, c.profile, flag}, separator)); v != nil {
			return v, c.place(c.profile, flag)
		}
	}
	if v := c.file.Get(flag); v != nil {
		return v, c.place("", flag)
	}
	return nil, ""
}

// place is where in the file a key stands.
func (c *Config) place(profile, key string) string {
	if profile == "" {
		return fmt.Sprintf("settings %s: %s", c.path, key)
	}
	return fmt.Sprintf("settings %s: profile %s: %s", c.path, profile, key)
}
