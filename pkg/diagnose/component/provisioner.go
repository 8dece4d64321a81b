package component

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/gangctl/gangctl/pkg/cluster/view"
	"github.com/gangctl/gangctl/pkg/setup/rbac"
)

// Provisioners are the Deployments of what makes the volumes of StorageClasses that name a provisioner, such as ebs.csi.aws.com or rancher.io/local-path: those that have its name in an
// argument, or else those that are called like it. There is none where whoever runs the cluster keeps it elsewhere.
func Provisioners(v *view.View, provisioner string) []*appsv1.Deployment {
	type provisionersOf struct{ name string }
	return view.Once(v, provisionersOf{provisioner}, func() []*appsv1.Deployment {
		var named, called []*appsv1.Deployment
		for _, d := range v.Snap.Deployments {
			names, all := namesIn(d.Name, &d.Spec.Template.Spec)
			switch {
			case strings.Contains(all, provisioner):
				named = append(named, d)
			case isCalled(names, provisioner):
				called = append(called, d)
			}
		}
		if len(named) == 0 {
			named = called
		}
		return Trusted(v, rbac.Component{Acts: []rbacv1.PolicyRule{right("", "persistentvolumes", "create")}}, named)
	})
}

// isCalled reports whether names are those of a provisioner: of a CSI driver they have that, and what the driver is called; of any other what is behind its domain.
func isCalled(names, provisioner string) bool {
	if _, name, qualified := strings.Cut(provisioner, "/"); qualified {
		return name != "" && strings.Contains(names, name) && strings.Contains(names, "provisioner")
	}
	short := shortName(provisioner, CSI)
	words := strings.FieldsFunc(names, func(r rune) bool { return r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') })
	return strings.Contains(names, CSI) && (len(short) >= unmistakable && strings.Contains(names, short) || slices.Contains(words, short))
}

// unmistakable is how many letters a name has that is not found in other words by chance, as pd is.
const unmistakable = 4
