package collect

import "slices"

// outcomes are the conditions of a training job that say more than how far it is.
var outcomes = []any{"Failed", "Succeeded"}

// conditions holds the conditions of jobs of which nobody asks more than their type and whether they hold, once each.
type conditions map[[2]string]any

// shorten leaves out when and why a job of another namespace came to where it is: only its end matters.
func (c conditions) shorten(job map[string]any) {
	status, _ := job["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	for i, item := range list {
		full, _ := item.(map[string]any)
		kind, _ := full["type"].(string)
		holds, _ := full["status"].(string)
		if kind == "" || holds == "True" && slices.Contains(outcomes, any(kind)) {
			continue
		}
		key := [2]string{kind, holds}
		if c[key] == nil {
			c[key] = map[string]any{"type": kind, "status": holds}
		}
		list[i] = c[key]
	}
}
