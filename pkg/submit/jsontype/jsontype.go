// Package jsontype describes how Go types read JSON: the fields of a struct by the names that they have in a document, and which types
// take a value as a whole. It is for those who walk a document along its type to name what does not fit. It is pure.
package jsontype

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// Fields are those of a struct by their names in JSON, of embedded structs too, with the names in the order of the source.
func Fields(t reflect.Type) (fields map[string]reflect.Type, names []string) {
	fields = map[string]reflect.Type{}
	collect(t, fields, &names)
	return fields, names
}

func collect(t reflect.Type, fields map[string]reflect.Type, names *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && (f.Anonymous || strings.Contains(options, "inline")):
			collect(Elem(f.Type), fields, names)
		case name != "":
			fields[name] = f.Type
			*names = append(*names, name)
		}
	}
}

// Elem is a type without pointers.
func Elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// DecodesItself reports whether a type reads its own JSON: times, quantities, ports that are numbers or names.
func DecodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
