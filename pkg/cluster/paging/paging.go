// Package paging reads lists that an API server answers in pages: all of a list, as it was at one time, or an error.
package paging

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Size is how many objects a page holds, where a caller sets no limit.
const Size = 500

// errEndless is the failure of a server that names a page as the next of itself, or of one that came after it.
var errEndless = errors.New("the API server repeats a page, so that the list has no end")

// Request requests one page: the List method of a client.
type Request[L metav1.ListInterface] func(context.Context, metav1.ListOptions) (L, error)

// All returns the pages of a list, which share its memory. Where a page is not kept, [Each] takes less.
func All[L metav1.ListInterface](ctx context.Context, o metav1.ListOptions, request Request[L]) ([]L, error) {
	var pages []L
	err := Each(ctx, o, request, func() { pages = nil }, func(page L) { pages = append(pages, page) })
	if err != nil {
		return nil, err
	}
	return pages, nil
}

// Each calls see with each page of a list. One that takes longer than the API server remembers its state is read again, as a whole:
// begin is called before the first page of each reading, and discards what was seen. After an error what was seen is not all there is.
func Each[L metav1.ListInterface](ctx context.Context, o metav1.ListOptions, request Request[L], begin func(), see func(L)) error {
	if o.Limit == 0 {
		o.Limit = Size
	}
	err := read(ctx, o, request, begin, see)
	if apierrors.IsResourceExpired(err) {
		o.Limit = 0 // the server does not part what has no limit
		err = read(ctx, o, request, begin, see)
	}
	return err
}

func read[L metav1.ListInterface](ctx context.Context, o metav1.ListOptions, request Request[L], begin func(), see func(L)) error {
	begin()
	for tokens := sets.New[string](); ; {
		page, err := request(ctx, o)
		if err != nil {
			return err
		}
		see(page)
		next := page.GetContinue()
		switch {
		case next == "":
			return nil
		case tokens.Has(next):
			return errEndless
		}
		tokens.Insert(next)
		// The token has the version of the list: a server refuses a request with both.
		o.Continue, o.ResourceVersion, o.ResourceVersionMatch = next, "", ""
	}
}

// Pointers are pointers to the items of a page, which share its memory.
func Pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
