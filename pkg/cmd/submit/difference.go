package submit

import (
	"encoding/base64"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// difference is the path of the first thing that is wanted and not there as it is wanted; empty if all is. What is there and
// not wanted, such as the defaults of the API server, makes no difference.
func difference(wanted, there any, path string) string {
	switch w := wanted.(type) {
	case map[string]any:
		t, ok := there.(map[string]any)
		if !ok && len(w) > 0 {
			return path
		}
		return differenceOfMaps(w, t, path)
	case []any:
		t, ok := there.([]any)
		if !ok && len(w) == 0 {
			return ""
		}
		if !ok || len(t) != len(w) {
			return path
		}
		for i := range w {
			if at := difference(w[i], t[i], fmt.Sprintf("%s[%d]", path, i)); at != "" {
				return at
			}
		}
		return ""
	case nil:
		return ""
	}
	if reflect.DeepEqual(wanted, there) || sameQuantity(wanted, there) {
		return ""
	}
	return path
}

func differenceOfMaps(wanted, there map[string]any, path string) string {
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		at := strings.TrimPrefix(path+"."+key, ".")
		switch {
		case at == "stringData": // of a Secret, which API servers keep in data
			texts, _ := wanted[key].(map[string]any)
			data, _ := there["data"].(map[string]any)
			for _, name := range slices.Sorted(maps.Keys(texts)) {
				if text, _ := texts[name].(string); data[name] != base64.StdEncoding.EncodeToString([]byte(text)) {
					return at + "." + name
				}
			}
			continue
		case wanted[key] == nil:
			continue
		}
		if found := difference(wanted[key], there[key], at); found != "" {
			return found
		}
	}
	return ""
}

// sameQuantity reports whether two values are one quantity, which API servers write in their own way.
func sameQuantity(a, b any) bool {
	if reflect.TypeOf(b) != reflect.TypeFor[string]() {
		return false
	}
	x, err := resource.ParseQuantity(fmt.Sprint(a))
	if err != nil {
		return false
	}
	y, err := resource.ParseQuantity(fmt.Sprint(b))
	return err == nil && x.Cmp(y) == 0
}
