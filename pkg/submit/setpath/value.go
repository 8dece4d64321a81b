package setpath

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	kjson "sigs.k8s.io/json"

	"github.com/gangctl/gangctl/pkg/submit/jsontype"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// shown is the value as errors show it: they go to logs and issues.
func (w walk) shown() string { return redact.Field(w.a.Path.String(), w.a.Value) }

// parse reads the value for a type, as JSON has it. A string is taken as it is; maps, lists and structs are JSON.
func (w walk) parse(t reflect.Type) (any, error) {
	text, end := w.a.Value, len(w.a.Path)
	bad := func(must string) (any, error) { return nil, w.errorf(end, "%q: must be %s", w.shown(), must) }
	switch {
	case t == reflect.TypeFor[resource.Quantity]():
		if _, err := resource.ParseQuantity(text); err != nil {
			return bad("a quantity, such as 500m, 4 or 16Gi")
		}
		return text, nil
	case t == reflect.TypeFor[intstr.IntOrString]():
		if n, err := strconv.ParseInt(text, 10, 32); err == nil {
			return n, nil
		}
		return text, nil
	case t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.MicroTime]():
		quoted, err := json.Marshal(text)
		if err != nil || json.Unmarshal(quoted, reflect.New(t).Interface()) != nil {
			return bad("a time, such as 2026-01-02T15:04:05Z")
		}
		return text, nil
	case t == unknown && !json.Valid([]byte(text)):
		return text, nil
	case jsontype.DecodesItself(t), t.Kind() == reflect.Interface:
		return w.decode(t)
	}
	switch t.Kind() {
	case reflect.String:
		return text, nil
	case reflect.Bool:
		if text != "true" && text != "false" {
			return bad("true or false")
		}
		return text == "true", nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(text, 10, t.Bits())
		if err != nil {
			return bad("a whole number of " + strconv.Itoa(t.Bits()) + " bits")
		}
		return n, nil
	case reflect.Float32, reflect.Float64:
		var f float64
		if json.Unmarshal([]byte(text), &f) != nil { // JSON has no NaN and no infinity
			return bad("a number")
		}
		return f, nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if _, err := base64.StdEncoding.DecodeString(text); err != nil {
				return bad("base64")
			}
			return text, nil
		}
		return w.decode(t)
	default:
		return w.decode(t)
	}
}

// decode reads JSON for a type, strictly: a field that the type does not have is an error, and so is one given twice.
func (w walk) decode(t reflect.Type) (any, error) {
	what := "JSON"
	switch t.Kind() {
	case reflect.Slice:
		what = `a list in JSON, such as ["a","b"]`
	case reflect.Map, reflect.Struct:
		what = `a map in JSON, such as {"key":"value"}`
	default: // JSON
	}
	end := len(w.a.Path)
	strict, err := kjson.UnmarshalStrict([]byte(w.a.Value), reflect.New(t).Interface())
	if err != nil {
		return nil, w.errorf(end, "%q: must be %s: %w", w.shown(), what, err)
	}
	if len(strict) > 0 {
		return nil, w.errorf(end, "%q: %w", w.shown(), strict[0])
	}
	var value any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(w.a.Value), &value); err != nil {
		return nil, w.errorf(end, "%q: must be %s: %w", w.shown(), what, err)
	}
	if value == nil {
		return nil, w.errorf(end, "null is no value; take the field away with %s-", w.a.Path)
	}
	return value, nil
}
