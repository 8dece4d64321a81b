package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cli/suggest"
)

// Edit is a settings file that is about to change. Comments and the order of keys stay as they are.
type Edit struct {
	path string
	doc  yaml.Node
}

// Open reads the file at path, which need not exist. A file that Load would refuse is an error.
func Open(path string) (*Edit, error) {
	path, err := Locate(path)
	if err != nil {
		return nil, err
	}
	e := &Edit{path: path}
	content, err := readFile(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, content); err != nil {
		return nil, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&e.doc); err != nil && !errors.Is(err, io.EOF) {
		return nil, failure.Errorf("settings %s: %w", path, err)
	}
	if err := decoder.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return nil, failure.Errorf("settings %s: holds more than one document", path).WithHint("remove what follows the line ---")
	}
	if e.doc.Kind == 0 || len(e.doc.Content) == 0 || e.doc.Content[0].Tag == "!!null" { // empty, or nothing but comments
		e.doc.Kind = yaml.DocumentNode
		e.doc.Content = []*yaml.Node{{Kind: yaml.MappingNode}}
		e.doc.HeadComment = comments(content)
	}
	return e, nil
}

// comments are the lines of a file that are comments.
func comments(content []byte) string {
	var kept []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

// check reports what Load would refuse in a file.
func check(path string, content []byte) error {
	return newConfig(path, nil).parse(content)
}

// Set gives a key of the profile, or of the top level if profile is empty, a text, or a list if there are several.
// Plain texts are written without quotes.
func (e *Edit) Set(profile, key string, values []string, plain bool) error {
	value := scalar(values[0], plain)
	if len(values) > 1 {
		value = &yaml.Node{Kind: yaml.SequenceNode}
		for _, v := range values {
			value.Content = append(value.Content, scalar(v, plain))
		}
	}
	section, err := e.section(profile, true)
	if err != nil {
		return err
	}
	put(section, key, value)
	return nil
}

// Unset removes a key of the profile, or of the top level if profile is empty, with its comments. A key that is not there is
// an error.
func (e *Edit) Unset(profile, key string) error {
	section, err := e.section(profile, false)
	if err != nil {
		return err
	}
	i := find(section, key)
	if i < 0 {
		where, names := key, []string{}
		if profile != "" {
			where = "profile " + profile + ": " + key
		}
		for at := 0; section != nil && at < len(section.Content); at += 2 {
			names = append(names, section.Content[at].Value)
		}
		missing := failure.Errorf("settings %s: %s is not set", e.path, where)
		if nearest := suggest.Nearest(key, names); nearest != "" {
			return missing.WithHint("did you mean %q?", nearest)
		}
		return missing.WithHint("see 'gangctl config view --show-origin'")
	}
	section.Content = append(section.Content[:i:i], section.Content[i+2:]...)
	return nil
}

// UseProfile makes the file choose a profile, which must be in it.
func (e *Edit) UseProfile(name string) error {
	c := newConfig(e.path, nil)
	content, err := e.encode()
	if err != nil {
		return err
	}
	if err := c.parse(content); err != nil {
		return err
	}
	name = strings.ToLower(name)
	if !slices.Contains(c.Profiles(), name) {
		return failure.Usagef("profile %q is not in %s", name, e.path).WithHint("%s", c.profileHint())
	}
	return e.Set("", profileKey, []string{name}, false)
}

// Save writes the file, readable by its owner only: whoever reads it meanwhile sees the old file or the new one. Directories
// are made as need be, and a symbolic link is kept.
func (e *Edit) Save() error {
	content, err := e.encode()
	if err == nil {
		err = check(e.path, content) // what is written can be read
	}
	if err == nil {
		err = replace(e.path, content)
	}
	if err != nil {
		return failure.Errorf("write settings: %w", err).WithHint("the file is %s; another directory is chosen with XDG_CONFIG_HOME", e.path)
	}
	return nil
}

func (e *Edit) encode() ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&e.doc); err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	return out.Bytes(), encoder.Close()
}

// replace writes a file through one next to it and a rename, for its owner only.
func replace(path string, content []byte) (failed error) {
	target, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		target = path
	case err != nil:
		return err
	}
	dir := filepath.Dir(target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// os.CreateTemp makes it 0600.
	temp, err := os.CreateTemp(dir, ".config-*.yaml")
	if err != nil {
		return err
	}
	defer func() {
		if failed != nil {
			failed = errors.Join(failed, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), target)
}
