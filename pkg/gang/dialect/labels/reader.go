package labels

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/gangctl/gangctl/pkg/gang"
)

// Reader reads gangs that are declared by pod labels alone. Members that disagree on the minimum: the largest counts.
func Reader() gang.Reader {
	return gang.Reader{
		Dialect: gang.Labels,
		NameOf:  NameOf,
		FromPods: func(key gang.Key, pods []*corev1.Pod) (gang.Declaration, error) {
			d := gang.Declaration{Key: key, MinMember: 1}
			var first error
			for _, pod := range pods {
				n, err := MinAvailable(pod)
				if err != nil && first == nil {
					first = err
				}
				d.MinMember = max(d.MinMember, n)
			}
			return d, first
		},
	}
}
