package manifest

import (
	"errors"
	"reflect"
	"strings"

	kubeflowv1 "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	spv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/gangctl/gangctl/pkg/document"
)

// strict decodes a document into a typed object and refuses fields that the type does not have, fields that are given twice and
// values of the wrong type. Whether something is wrong is for the API machinery to say; where it stands is looked up here.
func strict(d document.Document, u *unstructured.Unstructured, into runtime.Object) error {
	scheme := runtime.NewScheme()
	if err := errors.Join(kubeflowv1.AddToScheme(scheme), spv1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
	_, _, err := decoder.Decode(d.JSON, nil, into)
	what := u.GetKind() + " " + nameOf(u)
	var p *problem
	if root := tree(d); root != nil {
		// The JSON of a document no longer shows what YAML had twice.
		if p = twice(root, ""); p == nil && err != nil {
			p = compare(root, reflect.TypeOf(into), "")
		}
	}
	switch {
	case p != nil:
		return d.Errorf(p.line-1, "%s: %s", what, p.text)
	case err == nil:
		return nil
	}
	if details, ok := runtime.AsStrictDecodingError(err); ok {
		err = details.Errors()[0]
	}
	return d.Errorf(0, "%s: %s", what, plain(err))
}

// plain is the text of a decoder's error without the words that only programmers know.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"error unmarshaling JSON: ", "while decoding JSON: ", "yaml: ", "unmarshal errors:\n  ", "json: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return strings.ReplaceAll(text, "\n", " ")
}
