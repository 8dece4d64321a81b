package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// ErrNotReady means that the scheduler does not know all gangs yet. A list that
// lacks some would pass for a whole one.
var ErrNotReady = errors.New("the scheduler does not know all pods and gangs yet")

// Source knows the gangs.
type Source interface {
	// Gangs lists the gangs of a namespace, all if it is empty, in order.
	Gangs(namespace string) ([]Gang, error)
	// Leading reports whether this replica schedules.
	Leading() bool
}

// Handler serves the gangs. Who may query them the handlers before it decide.
func Handler(source Source) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		namespace, code, err := parse(r)
		if err != nil {
			refuse(w, code, err)
			return
		}
		gangs, err := source.Gangs(namespace)
		switch {
		case errors.Is(err, ErrNotReady):
			w.Header().Set("Retry-After", "1")
			refuse(w, http.StatusServiceUnavailable, err)
			return
		case err != nil:
			refuse(w, http.StatusInternalServerError, err)
			return
		case gangs == nil:
			gangs = []Gang{} // in JSON, an empty list is not null
		}
		send(w, http.StatusOK, List{APIVersion: APIVersion, Kind: Kind, Leading: source.Leading(), At: time.Now().UTC(), Items: gangs})
	})
}

// parse reads a request. What it does not understand it refuses: a filter that
// is ignored shows too much.
func parse(r *http.Request) (namespace string, code int, err error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return "", http.StatusMethodNotAllowed, fmt.Errorf("%s is not supported: gangs can only be read", r.Method)
	}
	for name, values := range r.URL.Query() {
		if name != "namespace" || len(values) != 1 {
			return "", http.StatusBadRequest, fmt.Errorf("query parameter %q: want namespace, once, or nothing", name)
		}
		namespace = values[0]
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			return "", http.StatusBadRequest, fmt.Errorf("namespace %q: %s", namespace, problems[0])
		}
	}
	return namespace, 0, nil
}

// refuse answers with an error as API servers do.
func refuse(w http.ResponseWriter, code int, err error) {
	reasons := map[int]metav1.StatusReason{
		http.StatusMethodNotAllowed: metav1.StatusReasonMethodNotAllowed, http.StatusBadRequest: metav1.StatusReasonBadRequest,
		http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	}
	send(w, code, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reasons[code], Message: err.Error(),
	})
}

func send(w http.ResponseWriter, code int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // who does not wait for the answer does not want it
}
