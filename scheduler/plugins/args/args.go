// Package args reads the arguments that a configuration file gives to one of
// our plugins (KubeSchedulerConfiguration, profiles[].pluginConfig[].args).
package args

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Decode returns defaults overlaid with what the file says. A field that T does
// not have is an error, as is a value of the wrong type; both are named.
func Decode[T any](object runtime.Object, defaults T) (T, error) {
	if object == nil {
		return defaults, nil
	}
	unknown, ok := object.(*runtime.Unknown)
	if !ok {
		return defaults, fmt.Errorf("args: want an object, got %T", object)
	}
	if len(unknown.Raw) == 0 {
		return defaults, nil
	}
	raw := unknown.Raw
	if unknown.ContentType != runtime.ContentTypeJSON || !json.Valid(raw) {
		var err error
		if raw, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return defaults, fmt.Errorf("args: %w", err)
		}
	}
	if err := yaml.UnmarshalStrict(raw, &defaults); err != nil {
		return defaults, fmt.Errorf("args: %w", err)
	}
	return defaults, nil
}
