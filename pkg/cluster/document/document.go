// Package document splits a stream of YAML or JSON into the objects that it holds, each with the place where it stands, so that
// errors can name it.
package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"
)

// Document is one object of a stream.
type Document struct {
	// Number counts from 1; Line is where the document begins.
	Number, Line int
	// Text is the document as it was written, JSON its content.
	Text, JSON []byte
}

// Errorf names the document and a line in it; an offset of 0 is the line on which it begins.
func (d Document) Errorf(offset int, format string, args ...any) error {
	return fmt.Errorf("document %d, line %d: %w", d.Number, d.Line+offset, fmt.Errorf(format, args...))
}

// Split returns the documents of a YAML or JSON stream. Those that hold nothing but comments are left out.
func Split(data []byte) ([]Document, error) {
	var docs []Document
	line, start, startLine := 1, 0, 1
	flush := func(end int) error {
		more, err := part(data[start:end], Document{Number: len(docs) + 1, Line: startLine})
		docs = append(docs, more...)
		return err
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if separator(data[at:end]) {
			if err := flush(at); err != nil {
				return nil, err
			}
			start, startLine = end, line+1
		}
		at = end
	}
	if err := flush(len(data)); err != nil {
		return nil, err
	}
	return docs, nil
}

// part returns the documents between two separators: one of YAML, or any number of JSON. The first has the number and the line of first.
func part(data []byte, first Document) ([]Document, error) {
	trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff")
	if len(trimmed) == 0 || trimmed[0] != '{' {
		return yamlDocument(data, first)
	}
	docs, err := jsonDocuments(data, first)
	if err != nil && len(docs) == 0 {
		if one, notYAML := yamlDocument(data, first); notYAML == nil {
			return one, nil // a mapping of YAML on one line
		}
	}
	return docs, err
}

func jsonDocuments(data []byte, first Document) ([]Document, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	var docs []Document
	decoder := json.NewDecoder(bytes.NewReader(data))
	for {
		d := Document{Number: first.Number + len(docs)}
		start := int(decoder.InputOffset())
		start += len(data[start:]) - len(bytes.TrimLeft(data[start:], " \t\r\n"))
		d.Line = first.Line + bytes.Count(data[:start], []byte("\n"))
		var raw json.RawMessage
		err := decoder.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			at := int(decoder.InputOffset())
			var syntax *json.SyntaxError
			switch {
			case errors.As(err, &syntax):
				at = int(syntax.Offset)
			case errors.Is(err, io.ErrUnexpectedEOF):
				at = len(data)
			}
			offset := max(0, bytes.Count(bytes.TrimRight(data[:min(at, len(data))], "\n"), []byte("\n"))+first.Line-d.Line)
			return docs, d.Errorf(offset, "invalid JSON: %w", err)
		}
		d.Text, d.JSON = raw, raw
		docs = append(docs, d)
	}
}

// yamlLine is the line that the YAML parser reports for an error, counted from the start of the document.
var yamlLine = regexp.MustCompile(`line (\d+): `)

func yamlDocument(data []byte, d Document) ([]Document, error) {
	if blank(data) {
		return nil, nil
	}
	raw, err := yaml.YAMLToJSON(data)
	if err != nil {
		offset := 0
		text := err.Error()
		if m := yamlLine.FindStringSubmatch(text); m != nil {
			offset, _ = strconv.Atoi(m[1]) // the expression matches digits only
			offset = max(0, offset-1)
			text = yamlLine.ReplaceAllString(text, "")
		}
		return nil, d.Errorf(offset, "invalid YAML: %s", text)
	}
	d.Text, d.JSON = data, raw
	return []Document{d}, nil
}

// separator reports whether a line ends a document: three dashes, or three dots, alone or before a comment.
func separator(line []byte) bool {
	for _, marker := range []string{"---", "..."} {
		if rest, ok := bytes.CutPrefix(line, []byte(marker)); ok && (blank(rest) || rest[0] == ' ' && blank(rest)) {
			return true
		}
	}
	return false
}

// blank reports whether every line is empty or a comment.
func blank(data []byte) bool {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return false
		}
	}
	return true
}
