package device

import (
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/gangctl/gangctl/pkg/cluster/snapshot"
	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/diagnose/command"
	"github.com/gangctl/gangctl/pkg/diagnose/phrase"
	"github.com/gangctl/gangctl/pkg/diagnose/stage"
	"github.com/gangctl/gangctl/pkg/placement"
)

// LeftClaims finds that devices are not used, and stay allocated to claims of pods that are gone.
func LeftClaims(c *stage.Context, without *placement.Cluster) *stage.Finding {
	claims := neededClaims(c, without)
	var lines, names []string
	devices := 0
	for _, k := range claims {
		lines, names = append(lines, leftClaim(c, k)), append(names, c.NameOf("ResourceClaim", k))
		devices += len(k.Status.Allocation.Devices.Results)
	}
	f := stage.Found(answer.DRAUnallocatable, "%s; %d/%d members fit without %s", leftInShort(c, claims, devices), c.Placed(*c.Placement), c.Gang.Total(), phrase.Verb(devices, "it", "them")).
		As(answer.Blocked, answer.Admin).Fact("resourceClaims", names[:min(len(names), command.MaxObjects)]).Fact("devices", devices)
	if len(claims) > 1 {
		stage.DetailEach(f, lines, func(line string) string { return line })
	}
	for _, k := range claims[:min(len(claims), stage.MaxLines)] {
		f.See("resource.k8s.io/v1", "ResourceClaim", k, ".status.reservedFor")
		if k.DeletionTimestamp != nil {
			f.Detail("%s was deleted %s ago, and is held by finalizer %s", c.NameOf("ResourceClaim", k), phrase.Age(c.View.Age(k.DeletionTimestamp.Time)), strings.Join(k.Finalizers, ", "))
		}
	}
	f.Detail("kube-controller-manager frees the devices of such a claim by itself: its log has why it has not")
	if first := claims[0]; c.Reader.Sees(first.Namespace) {
		f.Run(command.Kubectl(first.Namespace, "describe", "resourceclaim", first.Name))
	}
	return f.Fix(freed(claims, names))
}

// neededClaims are those of the claims that no pod uses without whose devices a gang has no place on a cluster: the others may keep theirs.
func neededClaims(c *stage.Context, cluster *placement.Cluster) []*resourcev1.ResourceClaim {
	all := c.View.LeftClaims()
	if len(all) > maxRules {
		return all
	}
	return placement.Needed(all, func(some []*resourcev1.ResourceClaim) bool {
		return len(some) > 0 && c.Fit(cluster.Releasing(some), nil).Fits()
	})
}

// leftInShort is the sentence for claims that no pod uses.
func leftInShort(c *stage.Context, claims []*resourcev1.ResourceClaim, devices int) string {
	if len(claims) == 1 {
		return leftClaim(c, claims[0])
	}
	return fmt.Sprintf("%d ResourceClaims have %s that no pod uses", len(claims), phrase.Count(devices, "device"))
}

// leftClaim reads like: ResourceClaim team/gold-0-gpus has 8 devices of n1, and its pod gold-0 does not exist.
func leftClaim(c *stage.Context, k *resourcev1.ResourceClaim) string {
	results := k.Status.Allocation.Devices.Results
	var pools, pods []string
	for _, r := range results {
		if !slices.Contains(pools, r.Pool) {
			pools = append(pools, r.Pool)
		}
	}
	for _, r := range k.Status.ReservedFor {
		pods = append(pods, r.Name)
	}
	text := fmt.Sprintf("%s has %s of %s, and ", c.TitleOf("ResourceClaim", k), phrase.Count(len(results), "device"), phrase.Names(pools))
	switch {
	case len(pods) == 0:
		return text + "is reserved for no pod"
	case !c.Reader.Sees(k.Namespace):
		return text + phrase.Verb(len(pods), "its pod is", "its pods are") + " gone"
	}
	return text + phrase.Verb(len(pods), "its pod ", "its pods ") + phrase.Names(pods) + phrase.Verb(len(pods), " does not exist any more, or has ended", " do not exist any more, or have ended")
}

// freed takes the devices from claims.
func freed(claims []*resourcev1.ResourceClaim, names []string) stage.Fix {
	var commands []string
	gone := map[*resourcev1.ResourceClaim]bool{}
	for _, k := range claims {
		gone[k] = true
		if len(commands) < command.MaxObjects {
			commands = append(commands, command.Kubectl(k.Namespace, "patch", "resourceclaim", k.Name, "--subresource=status", "--type=merge", "-p", `{"status":{"reservedFor":null,"allocation":null}}`))
			if k.DeletionTimestamp != nil {
				commands = append(commands, command.ClearFinalizers("resourceclaim", k))
			}
		}
	}
	return stage.Fix{
		Action: answer.Action{
			Kind: answer.Fix, By: answer.Admin, Text: "free the devices of ResourceClaim " + phrase.Names(names), Change: map[string]any{"resourceClaims": names[:min(len(names), command.MaxObjects)]},
			Command: command.Then(commands...), How: "once nothing of those pods runs on its node any more",
		},
		Apply: func(s *snapshot.Snapshot) *snapshot.Snapshot {
			s = s.Clone()
			for i, k := range s.ResourceClaims {
				if gone[k] {
					s.ResourceClaims[i] = k.DeepCopy()
					s.ResourceClaims[i].Status = resourcev1.ResourceClaimStatus{}
				}
			}
			s.ResourceClaims = slices.DeleteFunc(s.ResourceClaims, func(k *resourcev1.ResourceClaim) bool {
				return k.DeletionTimestamp != nil && k.Status.Allocation == nil
			})
			return s
		},
	}
}
