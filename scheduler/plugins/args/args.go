// Package args reads the arguments that a configuration file gives to one of
// our plugins (KubeSchedulerConfiguration, profiles[].pluginConfig[].args).
package args

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// Args are the arguments of one plugin.
type Args interface {
	// Validate returns an error that begins with the name of the field, as in "after: …".
	Validate() error
}

// Decode returns the defaults overlaid with the values in the file. A field that T does
// not have is an error, as is a value of the wrong type or one that T refuses; all are named.
func Decode[T Args](object runtime.Object, defaults T) (T, error) {
	decoded, err := decode(object, defaults)
	if err != nil {
		return defaults, fmt.Errorf("args: %w", err)
	}
	if err := decoded.Validate(); err != nil {
		return defaults, fmt.Errorf("args.%w", err)
	}
	return decoded, nil
}

func decode[T any](object runtime.Object, defaults T) (T, error) {
	if object == nil {
		return defaults, nil
	}
	unknown, ok := object.(*runtime.Unknown)
	if !ok {
		return defaults, fmt.Errorf("want an object, got %T", object)
	}
	if len(unknown.Raw) == 0 {
		return defaults, nil
	}
	raw := unknown.Raw
	if unknown.ContentType != runtime.ContentTypeJSON || !json.Valid(raw) {
		var err error
		if raw, err = yaml.YAMLToJSONStrict(raw); err != nil {
			return defaults, err
		}
	}
	if err := yaml.UnmarshalStrict(raw, &defaults); err != nil {
		return defaults, err
	}
	return defaults, nil
}
