package refusal

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
)

// RaiseQuota is a fix that gives a resource of a quota another limit.
func RaiseQuota(q *corev1.ResourceQuota, key corev1.ResourceName, limit resource.Quantity) stage.Fix {
	text := limit.String()
	return stage.Fix{
		Action: answer.Action{Kind: answer.Quota, By: answer.Admin, Text: fmt.Sprintf("raise %s of quota %s to %s", key, q.Name, text),
			Change:  map[string]any{"limit": text, "object": "ResourceQuota/" + q.Namespace + "/" + q.Name, "resource": string(key)},
			Command: command.MergePatch(q.Namespace, "resourcequota", q.Name, map[string]any{"spec": map[string]any{"hard": map[string]any{string(key): text}}})},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			return whatif.QuotaLimit(s, q, key, whatif.Limit(key, limit))
		},
	}
}
