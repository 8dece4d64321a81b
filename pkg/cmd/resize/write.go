package resize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"

	"github.com/gangctl/gangctl/pkg/cli/failure"
	"github.com/gangctl/gangctl/pkg/cluster/apply"
	"github.com/gangctl/gangctl/pkg/submit/redact"
)

// maxAttempts is how often a write is tried while controllers write the status of the object.
const maxAttempts = 8

// object is one object of the cluster.
type object struct {
	dynamic.ResourceInterface
	op failure.Op
}

func objectAt(client dynamic.Interface, gvr schema.GroupVersionResource, u *unstructured.Unstructured) object {
	op := failure.Op{Resource: gvr, Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	return object{client.Resource(gvr).Namespace(u.GetNamespace()), op}
}

// verb names a request for the object.
func (o object) verb(verb string) failure.Op {
	o.op.Verb = verb
	return o.op
}

// patch merges fields into the object as it was seen, and returns what is stored. Where a controller has written its status meanwhile, it is tried
// again; where another client has changed anything else, the error has the difference, and nothing is written.
func (o object) patch(ctx context.Context, seen *unstructured.Unstructured, fields map[string]any, dryRun ...string) (*unstructured.Unstructured, error) {
	var stored *unstructured.Unstructured
	options := metav1.PatchOptions{FieldManager: apply.FieldManager, DryRun: dryRun}
	err := o.asSeen(ctx, "patch", seen, func(seen *unstructured.Unstructured) error {
		text, err := json.Marshal(at(fields, seen))
		if err != nil {
			return err
		}
		stored, err = o.Patch(ctx, seen.GetName(), types.MergePatchType, text, options)
		return err
	})
	return stored, err
}

// asSeen makes a request that is refused if the object is not what was seen. Where a controller has written its status meanwhile, it is tried again;
// where another client has changed anything else, the error has the difference.
func (o object) asSeen(ctx context.Context, verb string, seen *unstructured.Unstructured, request func(seen *unstructured.Unstructured) error) error {
	op := o.verb(verb)
	for range maxAttempts {
		err := request(seen)
		if !apierrors.IsConflict(err) {
			return op.Wrap(err)
		}
		now, err := o.Get(ctx, seen.GetName(), metav1.GetOptions{})
		if err != nil {
			return o.verb("get").Wrap(err)
		}
		if now.GetUID() != seen.GetUID() || !apply.Same(now, seen) {
			return changedMeanwhile(op, seen, now)
		}
		seen = now
	}
	return failure.Errorf("%s: conflicts with other clients after %d attempts", op, maxAttempts).WithHint("run it again")
}

// at is a merge patch that is refused if the object is not what was seen.
func at(fields map[string]any, seen *unstructured.Unstructured) map[string]any {
	patch := runtime.DeepCopyJSON(fields)
	metadata, _ := patch["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = string(seen.GetUID()), seen.GetResourceVersion()
	patch["metadata"] = metadata
	return patch
}

// errChanged is in the error of a write that was refused for what another client wrote.
var errChanged = errors.New("another client has changed it meanwhile")

// changedMeanwhile refuses to write over what another client wrote, and shows it without what is secret: errors go to logs and into issues.
func changedMeanwhile(op failure.Op, seen, now *unstructured.Unstructured) error {
	if now.GetUID() != seen.GetUID() {
		return failure.Errorf("%s: it was deleted and created again", op).WithHint("look at it, and run the same command again")
	}
	const hint = "if it is to be changed on top of that, run the same command again"
	seen, now = redacted(seen), redacted(now)
	diff, err := apply.Result{Object: now, Before: seen, After: now}.Diff()
	if err != nil {
		return failure.Errorf("%s: %w: %v", op, errChanged, err).WithHint(hint)
	}
	var changed []string
	for line := range strings.Lines(diff) {
		header := strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ") || strings.HasPrefix(line, "@@")
		if !header && (line[0] == '-' || line[0] == '+') {
			changed = append(changed, strings.TrimRight(line, "\n"))
		}
	}
	if len(changed) == 0 {
		changed = []string{"a value that may be secret, and is not shown"}
	}
	return failure.Errorf("%s: %w", op, errChanged).WithHint("what is different:\n%s\n%s", strings.Join(changed, "\n"), hint)
}

// redacted is an object without what is secret.
func redacted(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	redact.Object(u.Object)
	return u
}

// difference is a merge patch that makes one object out of another.
func difference(before, after *unstructured.Unstructured) (map[string]any, error) {
	from, err := json.Marshal(apply.Content(before))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", before.GetName(), err)
	}
	to, err := json.Marshal(apply.Content(after))
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", after.GetName(), err)
	}
	text, err := jsonpatch.CreateMergePatch(from, to)
	if err != nil {
		return nil, fmt.Errorf("compare %s: %w", before.GetName(), err)
	}
	patch := map[string]any{}
	if err := utiljson.Unmarshal(text, &patch); err != nil {
		return nil, fmt.Errorf("compare %s: %w", before.GetName(), err)
	}
	return patch, nil
}
