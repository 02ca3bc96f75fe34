import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Annotation } from '../../../machines/agent/messages.js'
import { asObject, asText } from '../base/values.js'

interface Citation {
  key: string
  title: string | undefined
  annotation: Annotation
}

/** Drops duplicates. Accepts the forms of Chat Completions and Responses, search results, and plain URLs. */
export function readCitations(input: readonly unknown[]): Annotation[] {
  const read = new Map<string, Citation>()
  for (const value of input) {
    const citation = readCitation(value)
    // A later entry may add the title.
    if (citation && read.get(citation.key)?.title === undefined) read.set(citation.key, citation)
  }
  return [...read.values()].map(({ annotation }) => annotation)
}

function readCitation(value: unknown): Citation | null {
  const input: JsonObject | null = typeof value === 'string' ? { url: value } : asObject(value)
  if (input === null) return null
  const own = asObject(input.url_citation) ?? asObject(input.file_citation) ?? input
  const title = asText(own.title) || undefined
  const more = title === undefined ? {} : { title }
  const url = asText(own.url)
  if (url !== '')
    return { key: `url ${url}`, title, annotation: { type: 'url_citation', url_citation: { url, ...more } } }
  // Files created by the model are not sources.
  const filename = input.type === 'file_path' ? '' : asText(own.filename) || asText(own.file_id)
  const annotation: Annotation = { type: 'file_citation', file_citation: { filename, ...more } }
  return filename === '' ? null : { key: `file ${filename}`, title, annotation }
}

/** Citations at the top level of a response (Perplexity, xAI). Search results come first because they have titles. */
export function listTopLevelCitations(chunk: JsonObject): readonly Json[] {
  return [chunk.search_results, chunk.citations].flatMap((list) => (Array.isArray(list) ? list : []))
}
