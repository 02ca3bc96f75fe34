import type { Json, JsonObject } from '../../../machines/agent/json.js'
import type { Annotation } from '../../../machines/agent/messages.js'
import { asObject, asText } from '../base/values.js'

/** Drops duplicates. Accepts the forms of Chat Completions and Responses, search results, and plain URLs. */
export function readCitations(input: readonly unknown[]): Annotation[] {
  const read = new Map<string, Annotation>()
  for (const value of input) {
    const annotation = readCitation(value)
    if (annotation === null) continue
    const key = getCitationKey(annotation)
    const known = read.get(key)
    // A later entry may add the title.
    if (known === undefined || getTitle(known) === undefined) read.set(key, annotation)
  }
  return [...read.values()]
}

function readCitation(value: unknown): Annotation | null {
  if (typeof value === 'string')
    return value === '' ? null : { type: 'url_citation', url_citation: { url: value } }
  const input = asObject(value)
  if (input === null) return null
  const own = asObject(input.url_citation) ?? asObject(input.file_citation) ?? input
  const title = asText(own.title) === '' ? {} : { title: asText(own.title) }
  const url = asText(own.url)
  if (url !== '') return { type: 'url_citation', url_citation: { url, ...title } }
  const filename = readFilename(input, own)
  return filename === '' ? null : { type: 'file_citation', file_citation: { filename, ...title } }
}

/** Returns '' for files created by the model, because they are not sources. */
function readFilename({ type }: JsonObject, own: JsonObject): string {
  return type === 'file_path' ? '' : asText(own.filename) || asText(own.file_id)
}

function getCitationKey(annotation: Annotation): string {
  return annotation.type === 'url_citation'
    ? `url ${annotation.url_citation.url}`
    : `file ${annotation.file_citation.filename}`
}

function getTitle(annotation: Annotation): string | undefined {
  return annotation.type === 'url_citation' ? annotation.url_citation.title : annotation.file_citation.title
}

/** Citations at the top level of a response (Perplexity, xAI). Search results come first because they have titles. */
export function listTopLevelCitations(chunk: JsonObject): readonly Json[] {
  return [chunk.search_results, chunk.citations].flatMap((list) => (Array.isArray(list) ? list : []))
}
