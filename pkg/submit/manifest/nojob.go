package manifest

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/gangctl/gangctl/pkg/cli/suggest"
	"github.com/gangctl/gangctl/pkg/gang"
	kinds "github.com/gangctl/gangctl/pkg/gang/kind"
	"github.com/gangctl/gangctl/pkg/gang/kind/batchjob"
)

// supported is what can be submitted.
const supported = "gangctl submits TFJobs, PyTorchJobs, MPIJobs, XGBoostJobs, PaddleJobs and JAXJobs of kubeflow.org, TrainJobs, JobSets, LeaderWorkerSets, RayJobs, RayClusters and Jobs of several members, with the other objects of the file"

// NoJobError reports that a file holds objects, and no job whose members are to be a gang.
type NoJobError struct {
	// Objects are what it holds; there is at least one.
	Objects []*unstructured.Unstructured
}

// maxNamed is how many objects are named.
const maxNamed = 3

// Error implements error.
func (e *NoJobError) Error() string {
	var names []string
	for _, u := range e.Objects[:min(len(e.Objects), maxNamed)] {
		names = append(names, u.GetKind()+" "+nameOf(u))
	}
	text := "the file holds no job, but " + strings.Join(names, ", ")
	if more := len(e.Objects) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Hint is what can be done with it. Files are the flags that name the files.
func (e *NoJobError) Hint(files string) string {
	for _, u := range e.Objects {
		kind := u.GroupVersionKind().GroupKind()
		reader, known := kinds.ByKind(kind)
		switch {
		case kind == batchjob.GroupKind():
			return fmt.Sprintf("a Job that runs one pod at a time is no gang: gangctl submit job %[1]s submits it all the same, and so does kubectl create %[1]s", files)
		case known && reader.Unmanaged:
			return fmt.Sprintf("gangctl reads each %s, and submits none: kubectl create %s", reader.Title(), files)
		case known:
			continue
		}
		if meant, ok := meantBy(u.GetKind()); ok {
			return fmt.Sprintf("did you mean a %s of %s?", meant.Kind, meant.GroupKind.WithVersion(meant.Versions[0]).GroupVersion())
		}
	}
	return supported
}

// meantBy is the kind of job that was probably meant by a kind that is none: it is one of another API group, or mistyped.
func meantBy(kind string) (gang.JobReader, bool) {
	typed := strings.ToLower(kind)
	for _, r := range kinds.Readers() {
		if own := strings.ToLower(r.Kind); !r.Unmanaged && (own == typed || suggest.OneEdit(typed, own)) {
			return r, true
		}
	}
	return gang.JobReader{}, false
}
