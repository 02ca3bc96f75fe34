/** Content that is at hand. */
export interface DataAttachment {
  /** Bytes, or the text itself. */
  data: string | Uint8Array
  name: string
  /** Default: from the name's extension. */
  mimeType?: string
}

/** A file. */
export interface FileAttachment {
  path: string
  mimeType?: string
  /** Default: the last part of the path. */
  name?: string
}

/** A page or a file at an http(s) URL on a public address. */
export interface UrlAttachment {
  url: string
  mimeType?: string
  /** Default: the last part of the URL's path, else its host. */
  name?: string
}

/** What can be loaded: data, a file, or a URL. */
export type Attachment = DataAttachment | FileAttachment | UrlAttachment

/** An attachment as text. */
export interface LoadedAttachment {
  name: string
  /** Without parameters: `text/html`. */
  mimeType: string
  /** Size of the content before it became text, in bytes. */
  bytes: number
  text: string
}

/** Where attachments may come from, and how large they may be. */
export interface AttachmentOptions {
  /** Bytes that are read at most, and what compressed content may unpack to. Default 10 MB (10 000 000). */
  maxBytes?: number
  /** Characters of text that are kept; a note says when it is cut. Default 200 000. */
  maxChars?: number
  /** Pages of a PDF that are read; a note says when there are more. Default 500. */
  maxPages?: number
  /** Milliseconds that reading may take as a whole, redirects included, and again turning it into text. Default 15 000. */
  timeoutMs?: number
  /** Stops the loading, which then rejects with the signal's reason. */
  signal?: AbortSignal
  /**
   * The folder that paths are relative to and must stay in, symbolic links resolved. Without it any file of this process
   * can be read: set it whenever a path comes from a user or a model.
   */
  root?: string
  /** Private addresses that URLs may lead to nevertheless: addresses, CIDR blocks or host names. Default: none. */
  allowAddresses?: readonly string[]
}
