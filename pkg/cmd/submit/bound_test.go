package submit

import (
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/gangctl/gangctl/install"
)

// The definition that install ships takes every minimum that submit writes, and none that it refuses.
func TestMaximumOfDefinition(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(install.PodGroupCRD(), &definition); err != nil {
		t.Fatal(err)
	}
	for _, version := range definition.Spec.Versions {
		minMember := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["minMember"]
		if minMember.Maximum == nil || *minMember.Maximum != maxMinimum {
			t.Errorf("%s: the maximum of minMember is %v, and that of --min-available %d", version.Name, minMember.Maximum, maxMinimum)
		}
	}
}
