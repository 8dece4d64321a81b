package placement

// Largest returns the largest value from lo to hi for which fits is true, if fits is true up to some value and false above.
// ok is false if it is false even for lo.
func Largest(lo, hi int64, fits func(int64) bool) (value int64, ok bool) {
	if lo > hi || !fits(lo) {
		return 0, false
	}
	for lo < hi {
		mid := lo + (hi-lo+1)/2
		if fits(mid) {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	return lo, true
}
