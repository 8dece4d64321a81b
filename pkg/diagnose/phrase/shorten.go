package phrase

// Shorten cuts a text to a limit in bytes, as APIs have it, between two
// characters, and shows that it did. The limit is 3 or more.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const dots = "…"
	cut := 0
	for i := range text {
		if i > limit-len(dots) {
			break
		}
		cut = i
	}
	return text[:cut] + dots
}
