package intern

import (
	"reflect"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// What Kubernetes decodes to is what the pool decodes to, and what it refuses the pool refuses.
func TestJSONIsThatOfKubernetes(t *testing.T) {
	for _, text := range []string{
		`{}`, ` {"a" : {} , "b":[ ], "c":null,"d":true,"e":false, "f":""}`, `{"n":[0,-1,1.5,1e3,9223372036854775807,9223372036854775808,-0.0]}`,
		`{"s":["plain","\"quoted\"","a\\\\b","\u00e9\ud83d\ude00","\n\t","é","` + "\xff" + `"],"k\u0065y":1,"é":2,"\"":3}`,
		`{"twice":1,"twice":{"a":2}}`, `{"spec":{"a":[{"b":1}]},"status":[1],"labels":null,"template":"t"}`,
		`{"deep":{"deep":{"deep":{"deep":{"spec":{"deep":[[[[{"x":[]}]]]]}}}}}}`,
		``, `[]`, `"x"`, `null`, `{"a":}`, `{"a":tru}`, `{"a":1`, `{"a":"x}`, `{"a":01}`, `{"a":"\q"}`, `{a:1}`, `{"a":1,}`, "{\"a\":\"\x01\"}",
	} {
		var want any
		wantErr := utiljson.Unmarshal([]byte(text), &want)
		object, isObject := want.(map[string]any)
		pool := NewPool()
		for range 2 { // the second time from what it remembers
			got, err := pool.JSON([]byte(text))
			if (err == nil) != (wantErr == nil && isObject) {
				t.Errorf("%s: got %v, Kubernetes %v", text, err, wantErr)
			}
			if err == nil && !reflect.DeepEqual(got, object) {
				t.Errorf("%s: got %#v, want %#v", text, got, object)
			}
		}
	}
}
