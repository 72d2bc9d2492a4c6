// Package attachment keeps the files that come with prompts and out of tools:
// each content once, under its hash, in a directory of the server, with a row in
// the store that sessions refer to. What a file is, is told by its content: a
// declared type is never believed. Images are measured by their header alone, so
// that no small file can unpack into a large one here.
//
// Servers that share a database must share the directory too.
package attachment

import (
	"github.com/switchyard-dev/switchyard/id"
	"github.com/switchyard-dev/switchyard/store/db"
)

// The bounds of what is accepted.
const (
	// MaxSize bounds any attachment, in bytes.
	MaxSize = 32 << 20
	// MaxImage bounds an image, in bytes.
	MaxImage = 20 << 20
	// MaxPixels bounds width × height of an image.
	MaxPixels = 100_000_000
)

// Attachment is a file that is kept. It never changes.
type Attachment struct {
	ID     id.Attachment `json:"id"`
	Mime   string        `json:"mime" doc:"By the content, whatever was declared."`
	Size   int64         `json:"size" doc:"Bytes."`
	Width  int           `json:"width,omitempty" doc:"Pixels, of images."`
	Height int           `json:"height,omitempty" doc:"Pixels, of images."`
	// Hash is the SHA-256 of the content in hexadecimal digits.
	Hash string `json:"-"`
	// Name is what the file was called when it first came; it may be empty.
	Name string `json:"-"`
}

// Inline tells whether browsers may show the content in place: an image or a
// PDF, but no text, which could be a page.
func (a Attachment) Inline() bool { return a.Mime != TypeText }

func fromRow(row db.Attachment) Attachment {
	return Attachment{
		ID: id.Attachment(row.ID), Mime: row.Mime, Size: row.Size, Width: int(row.Width), Height: int(row.Height),
		Hash: row.Hash, Name: row.Name,
	}
}
