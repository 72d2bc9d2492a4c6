package catalog

import "slices"

// Intake says which files a model takes beside text, and how large they may be.
// Bytes are of the files themselves, before they are encoded for sending.
type Intake struct {
	Image, PDF bool
	// ImageBytes and ImageSide bound one image; ImageSide is in pixels and counts
	// for width and height.
	ImageBytes int64
	ImageSide  int
	// Files and Bytes bound what one request holds in all.
	Files int
	Bytes int64
}

// encoded turns a bound of base64, which is what providers count, into one of
// bytes.
func encoded(n int64) int64 { return n / 4 * 3 }

// bounds are what providers state for their own API. Anthropic (its guide to
// vision): 5 MB and 8,000 pixels a side for an image, counted as base64; 2,000
// pixels a side once there are more than 20; 32 MB for a request. OpenAI (its
// guide to images): 20 MB for an image, 50 MB and 500 images for a request. For
// those who state nothing the tightest bounds are taken: an image that is left
// out does less harm than a conversation that the provider refuses from then on.
func bounds(k Kind) Intake {
	if k == KindOpenAI {
		return Intake{ImageBytes: encoded(20_000_000), ImageSide: 1 << 16, Files: 500, Bytes: encoded(48_000_000)}
	}
	return Intake{ImageBytes: encoded(5 << 20), ImageSide: 8000, Files: 20, Bytes: encoded(28 << 20)}
}

// IntakeOf gives what a model takes, by its provider's family of API.
func IntakeOf(m Model, k Kind) Intake {
	in := bounds(k)
	in.Image = slices.Contains(m.Capabilities.Input, "image")
	in.PDF = slices.Contains(m.Capabilities.Input, "pdf")
	return in
}
