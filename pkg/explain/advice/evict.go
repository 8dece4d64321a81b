package advice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gangctl/gangctl/pkg/explain/answer"
	"github.com/gangctl/gangctl/pkg/explain/command"
	"github.com/gangctl/gangctl/pkg/explain/ladder"
	"github.com/gangctl/gangctl/pkg/explain/phrase"
	"github.com/gangctl/gangctl/pkg/explain/world"
	"github.com/gangctl/gangctl/pkg/snapshot"
)

// evict offers to take room from services, which never end, and from jobs of lower priority. Never from equals: that is for
// people to settle.
func (s *search) evict() {
	mine := s.priority()
	victims := s.others(func(h *world.Holder) bool {
		return len(h.Stuck(s.w.Now)) == 0 && (!h.Ends || h.Priority() < mine)
	})
	if len(victims) == 0 {
		return
	}
	for i, set := range s.minimal(victims) {
		if i == maxSets {
			return
		}
		s.offer(eviction(set))
	}
}

func (s *search) priority() int32 {
	for _, r := range s.base.Party.Roles {
		if r.Pod.Spec.Priority != nil {
			return *r.Pod.Spec.Priority
		}
	}
	return 0
}

func eviction(set []*world.Holder) ladder.Fix {
	var names, texts, commands []string
	for _, h := range set {
		names = append(names, h.String())
		texts = append(texts, h.Kind+" "+h.String())
		commands = append(commands, evictCommand(h))
	}
	return ladder.Fix{
		Action: answer.Action{Kind: answer.Evict, By: answer.Admin, Text: "take the room of " + phrase.Names(texts), Cost: fmt.Sprintf("%s stops", phrase.Names(names)),
			Change: map[string]any{"jobs": names}, Command: command.Then(commands...)},
		Apply: func(snap *snapshot.Snapshot) *snapshot.Snapshot { return gone(snap, set) },
	}
}

func evictCommand(h *world.Holder) string {
	switch h.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet":
		return command.Kubectl(h.Namespace, "scale", strings.ToLower(h.Kind)+"/"+h.Name, "--replicas=0")
	}
	kind := strings.ToLower(h.Kind)
	if h.Job != nil && !h.Leftover() && slices.Contains(h.Job.Reader.Words, kind) {
		return command.MergePatch(h.Namespace, kind, h.Name, map[string]any{"spec": map[string]any{"runPolicy": map[string]any{"suspend": true}}})
	}
	return command.Kubectl(h.Namespace, "delete", kind, h.Name)
}
