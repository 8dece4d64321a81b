package refusal

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/diagnose/whatif"
	"github.com/gangctl/gangctl/pkg/gang/request"
	"github.com/gangctl/gangctl/pkg/placement/quota"
)

// OverQuota finds that a quota does not have left what is wanted, or never allows the whole of which that is a part. Needing begins the clause about what is wanted, and who
// needs the whole.
func OverQuota(q *corev1.ResourceQuota, key corev1.ResourceName, want, whole, used, limit resource.Quantity, needing, who string) *stage.Finding {
	name := quota.Resource(key)
	amount := func(x resource.Quantity) int64 { return request.Amount(name, x) }
	state := "has too little left" // unless nothing is
	if used.Cmp(limit) >= 0 {
		state = "is used up"
	}
	f := stage.Found(answer.NSQuota, "quota %s of namespace %s %s: %s of %s used, %s %s", q.Name, q.Namespace, state,
		phrase.Quantity(name, amount(used)), phrase.Amount(name, amount(limit)), needing, phrase.Quantity(name, amount(want)))
	if whole.Cmp(limit) > 0 {
		f = stage.Found(answer.NSQuotaTooSmall, "quota %s of namespace %s allows %s in all, and %s needs %s", q.Name, q.Namespace,
			phrase.Amount(name, amount(limit)), who, phrase.Quantity(name, amount(whole)))
	}
	return f.Fact("quota", q.Name).Fact("resource", string(key)).Fact("requested", want.String()).Fact("used", used.String()).Fact("limit", limit.String())
}

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
