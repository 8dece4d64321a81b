// Package api serves what the scheduler knows of every gang as JSON, to
// whoever may see its metrics and is allowed to: how many members there are and
// have places, why it waits, what is short, who is in the way, what is kept for
// it, and when it is tried again.
package api

import (
	"time"

	"github.com/gangctl/gangctl/pkg/diagnose/answer"
	"github.com/gangctl/gangctl/pkg/gang"
	"github.com/gangctl/gangctl/scheduler/order"
	"github.com/gangctl/gangctl/scheduler/reasons"
)

const (
	// Path is where the gangs are served, and the nonResourceURL of the right to
	// see them.
	Path = "/gangs"
	// APIVersion is that of the list. Fields may be added to it; none changes its
	// meaning.
	APIVersion = "gangctl.dev/v1"
	// Kind is that of the list.
	Kind = "GangList"
)

// List is the answer.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Leading reports whether this replica schedules. One that does not knows the
	// gangs, and not why they wait.
	Leading bool `json:"leading"`
	// At is when the list was made.
	At time.Time `json:"at"`
	// Items are ordered by namespace, name and dialect.
	Items []Gang `json:"items"`
}

// State is how a gang stands, in the terms of [gang.State] where the scheduler means the same: Pending, Running, Succeeded and
// Failed. It goes by nodes alone, which is what a scheduler decides on: a gang is Running when as many members as it needs have
// one, be their containers ready or not. Whether a gang that has fewer is Starting or Degraded depends on its job, which the
// scheduler does not read; so there are two states of its own.
type State = gang.State

// The states that only the scheduler has.
const (
	Incomplete   State = "Incomplete"   // cannot be tried: members or its object are missing, or members are gated
	BelowMinimum State = "BelowMinimum" // fewer members have nodes than it needs: it starts, or it lost members
)

// Gang is one gang as the scheduler sees it.
type Gang struct {
	Namespace string       `json:"namespace"`
	Name      string       `json:"name"`
	Dialect   gang.Dialect `json:"dialect"`
	Scheduler string       `json:"scheduler,omitempty"`
	// Object is what declares the gang; absent where its pods do.
	Object *Object `json:"object,omitempty"`
	// MinMember is what the gang declares; 0 where that is not known.
	MinMember int32 `json:"minMember"`
	Priority  int32 `json:"priority"`
	Pods      Pods  `json:"pods"`
	State     State `json:"state"`
	// Since is when the gang came to this state, as its pods have it.
	Since *time.Time `json:"since,omitempty"`

	// Code, one of those of why-pending, and Message are why it waits.
	Code    answer.Code `json:"code,omitempty"`
	Message string      `json:"message,omitempty"`
	// Required is how many members must have a place now, completed ones not counted,
	// Fit how many of them do or could. Fit is absent where it was not tried.
	Required int32  `json:"required"`
	Fit      *int32 `json:"fit,omitempty"`
	// Shortages are the resources of which there is too little.
	Shortages []reasons.Shortage `json:"shortages,omitempty"`
	// Blockers name the gangs in the way, as NAMESPACE/NAME.
	Blockers []string `json:"blockers,omitempty"`
	// Claims are the places that are kept for the replacements of dead members.
	Claims []Claim `json:"claims,omitempty"`
	// Order is why it comes when it does among those of its priority; absent where it waits for something else than nodes.
	Order *Order `json:"order,omitempty"`
	// Reservation is what a gang has that has waited long.
	Reservation *Reservation `json:"reservation,omitempty"`
	// NextAttempt is when it is tried at the latest, Retry what has it tried sooner.
	NextAttempt *time.Time `json:"nextAttempt,omitempty"`
	Retry       string     `json:"retry,omitempty"`
}

// Order is the place of a gang among those of its priority.
type Order struct {
	Policy order.Policy `json:"policy"`
	// Ratio is its response ratio, under that policy: (wait + expected runtime) / expected runtime.
	Ratio float64 `json:"ratio,omitempty"`
	// ExpectedRuntime is in seconds, Basis what it is known from: deadline, annotation, or learnt. Both are absent where nothing is
	// known.
	ExpectedRuntime int64       `json:"expectedRuntime,omitempty"`
	Basis           order.Basis `json:"basis,omitempty"`
	// Message is the same in a sentence.
	Message string `json:"message"`
}

// Object is the API object of a gang.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	UID        string `json:"uid,omitempty"`
}

// Pods counts the members that exist. Bound ones have a node, have not ended and
// are not being deleted; running ones are among them.
type Pods struct {
	Total     int32 `json:"total"`
	Bound     int32 `json:"bound"`
	Running   int32 `json:"running"`
	Succeeded int32 `json:"succeeded"`
	Failed    int32 `json:"failed"`
}

// Claim is a place that is kept for a replacement.
type Claim struct {
	Node string `json:"node"`
	// Member is the pod that had the place; empty where it died unseen.
	Member string    `json:"member,omitempty"`
	Until  time.Time `json:"until"`
}

// Reservation is places that wait for a gang.
type Reservation struct {
	Nodes []string  `json:"nodes"`
	Since time.Time `json:"since"`
	// Start is when the last of the places is free at the latest; absent where
	// a pod on them runs without a limit.
	Start *time.Time `json:"start,omitempty"`
}
