package usage

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/diagnose/queueing"
)

// admitted are the quotas of a ClusterQueue, nominal and over all flavors, with what its admitted Workloads use.
func (l *ledger) admitted(u *unstructured.Unstructured) []Quota {
	quotas := []Quota{}
	for name, of := range queueing.QuotaTree(l.w).Totals(u.GetName()) {
		quotas = append(quotas, Quota{Resource: name, Limit: of.Nominal, Used: of.Used})
	}
	slices.SortFunc(quotas, byResource)
	return quotas
}
