// Package page writes what is measured to a page of documentation, between two lines of it.
package page

import (
	"bytes"
	"fmt"
	"os"
)

// Section is the name of a part of a page.
type Section string

// Begin is the line before the section.
func (s Section) Begin() string { return "<!-- " + string(s) + ": begin -->" }

// End is the line after it.
func (s Section) End() string { return "<!-- " + string(s) + ": end -->" }

// Write replaces the section in a file.
func (s Section) Write(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(old, []byte(s.Begin()+"\n"))
	_, after, ends := bytes.Cut(rest, []byte(s.End()+"\n"))
	if !begins || !ends {
		return fmt.Errorf("%s has no lines %s and %s", file, s.Begin(), s.End())
	}
	made := fmt.Sprintf("%s%s\n%s\n%s\n%s", before, s.Begin(), text, s.End(), after)
	return os.WriteFile(file, []byte(made), 0o644) //nolint:gosec // a page of documentation
}
