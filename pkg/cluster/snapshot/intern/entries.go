package intern

import "bytes"

// Entries are the encoded entries of a map, such as labels.
type Entries struct {
	all []entryAt
}

// entryAt is one of them.
type entryAt struct{ whole, key, value []byte }

// add adds one by its encoding: with its tag, and without.
func (e *Entries) add(whole, content []byte) error {
	key, value, err := entry(content)
	e.all = append(e.all, entryAt{whole, key, value})
	return err
}

// Get returns the value of a key.
func (e *Entries) Get(key []byte) (value []byte, ok bool) {
	for _, at := range e.all {
		if bytes.Equal(at.key, key) {
			return at.value, true
		}
	}
	return nil, false
}

// Drop leaves the entry of a key out.
func (e *Entries) Drop(key []byte) {
	for i, at := range e.all {
		if bytes.Equal(at.key, key) {
			e.all = append(e.all[:i], e.all[i+1:]...)
			return
		}
	}
}
