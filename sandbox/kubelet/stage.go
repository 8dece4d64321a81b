package kubelet

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"

	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/apis/v1alpha1"

	"github.com/gangctl/gangctl/sandbox/kubelet/process"
)

//go:embed stages
var stageFiles embed.FS

// stages returns the state machines of nodes and pods, as KWOK takes them. Pods
// with the image of that name, if there is one, are left to others.
func stages(except string) (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	paths, err := fs.Glob(stageFiles, "stages/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list stages: %w", err)
	}
	out := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, path := range paths {
		data, err := stageFiles.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			stage := &v1alpha1.Stage{}
			err := decoder.Decode(stage)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("parse %s: %w", path, err)
			}
			internal, err := internalversion.ConvertToInternalStage(stage)
			if err != nil {
				return nil, fmt.Errorf("convert stage %s: %w", stage.Name, err)
			}
			if except != "" && internal.Spec.ResourceRef.Kind == "Pod" {
				leaveOut(internal, except)
			}
			out[internal.Spec.ResourceRef] = append(out[internal.Spec.ResourceRef], internal)
		}
	}
	return out, nil
}

// leaveOut keeps a stage of pods from those whose first container has the image.
func leaveOut(stage *internalversion.Stage, image string) {
	stage.Spec.Selector.MatchExpressions = append(stage.Spec.Selector.MatchExpressions, internalversion.MatchExpression{
		JQ: &internalversion.SelectorJQ{
			Key:      ".spec.containers[0].image | test(" + strconv.Quote(process.ImagePattern(image)) + ")",
			Operator: internalversion.SelectorOpNotIn, Values: []string{"true"},
		},
	})
}
