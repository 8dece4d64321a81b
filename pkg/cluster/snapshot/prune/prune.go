// Package prune leaves fields out of encoded objects, JSON or protobuf, before anything is decoded: what is not built needs
// neither time nor memory. It is pure.
package prune

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Any stands for every key of an object in a path.
const Any = "*"

// Fields are fields to leave out, by name. A nil value is a field that is left out whole.
type Fields map[string]Fields

// Drop returns the fields at some paths, such as spec.containers.env. Lists do not count as a step. A path must not lead
// through one that is left out.
func Drop(paths ...string) Fields {
	all := Fields{}
	for _, path := range paths {
		at := all
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			if at[step] == nil {
				at[step] = Fields{}
			}
			at = at[step]
		}
		at[steps[len(steps)-1]] = nil
	}
	return all
}

// Under puts the same fields below each of some paths, and returns the paths.
func Under(parents []string, fields ...string) []string {
	var paths []string
	for _, parent := range parents {
		for _, field := range fields {
			paths = append(paths, parent+"."+field)
		}
	}
	return paths
}

// find returns what is to be left out of a field, and whether all of it.
func (f Fields) find(name string) (below Fields, whole bool) {
	below, found := f[name]
	if !found {
		below, found = f[Any]
	}
	return below, found && below == nil
}

// Message are fields to leave out of a protobuf message: at each number nil for a field that stays as it is.
type Message []*field

// field is the part that is left out of one field: all of it, or some of what is below.
type field struct {
	whole bool
	below Message
}

// ForType translates the names into the numbers that the generated protobuf code of a Kubernetes API type has for them. A
// name that the type lacks is an error.
func (f Fields) ForType(t reflect.Type) (Message, error) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	var m Message
	for name, below := range f {
		number, of, err := numberOf(t, name)
		if err != nil {
			return nil, err
		}
		for len(m) <= number {
			m = append(m, nil)
		}
		m[number] = &field{whole: below == nil}
		if below == nil {
			continue
		}
		if m[number].below, err = below.ForType(of); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// numberOf finds a field by its name in protobuf, and its type.
func numberOf(t reflect.Type, name string) (int, reflect.Type, error) {
	if t.Kind() == reflect.Struct {
		for i := range t.NumField() {
			number, called := parseTag(t.Field(i).Tag.Get("protobuf"))
			if called == name {
				return number, t.Field(i).Type, nil
			}
		}
	}
	return 0, nil, fmt.Errorf("%s has no field %q", t, name)
}

// parseTag reads a struct tag such as `bytes,17,rep,name=managedFields`.
func parseTag(tag string) (number int, name string) {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0, ""
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return 0, ""
	}
	for _, part := range parts[2:] {
		if called, ok := strings.CutPrefix(part, "name="); ok {
			name = called
		}
	}
	return number, name
}
