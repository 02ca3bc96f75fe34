import type { MediaPart } from '../../machines/agent/messages.js'
import { toBase64 } from '../core/models/media.js'
import { ModelError } from '../core/models/provider.js'
import { unsupportedContent } from './ai-sdk-failure.js'
import type { SpecificationVersion } from './ai-sdk-model.js'
import type { FileData, PromptPart } from './spec.js'
import { decodePercent } from '../core/base/text.js'

/** By media type, the addresses that the provider fetches by itself. */
export type SupportedUrls = Readonly<Record<string, RegExp[]>>

/** What a file is sent to. */
export interface FileTarget {
  version: SpecificationVersion
  /** The name under which the provider reads its options. */
  provider: string
  modelId: string
  urls: SupportedUrls
}

/** A picture, sound or document of the user's, in the form that the model's version has for it. */
export function toFilePart(part: MediaPart, target: FileTarget): PromptPart {
  switch (part.type) {
    case 'image_url': {
      const { url, detail } = part.image_url
      const options = detail && target.provider === 'openai' ? { openai: { imageDetail: detail } } : null
      return {
        ...toLocatedPart(url, 'image/*', undefined, target),
        ...(options && { providerOptions: options }),
      }
    }
    case 'input_audio': {
      const { data, format } = part.input_audio
      return toBytesPart(data, format === 'mp3' ? 'audio/mpeg' : 'audio/wav', undefined, target)
    }
    default: {
      const { file_data: data, file_id: id, filename } = part.file
      if (data !== undefined) return toLocatedPart(data, getMediaType(filename), filename, target)
      return toStoredPart(id ?? '', filename, target)
    }
  }
}

/** `data:` and base64 are sent as they are, addresses where the provider fetches them. */
function toLocatedPart(
  data: string,
  mediaType: string,
  filename: string | undefined,
  target: FileTarget,
): PromptPart {
  const [start, type = '', base64] = /^data:([^,;]*)[^,]*?(;base64)?,/i.exec(data) ?? []
  if (start !== undefined) {
    const rest = data.slice(data.indexOf(',') + 1)
    return toBytesPart(base64 === undefined ? encodeText(rest) : rest, type || mediaType, filename, target)
  }
  if (!/^https?:\/\//i.test(data)) return toBytesPart(data, mediaType, filename, target)
  if (!URL.canParse(data)) throw unsupportedContentError(`${data} is no address that could be fetched.`)
  if (!canFetch(target.urls, mediaType, data)) {
    throw unsupportedContentError(
      `${target.modelId} fetches no ${describeKind(mediaType)} from ${new URL(data).host}. Load it, and pass its bytes: data:${mediaType.replace('*', 'png')};base64,…`,
    )
  }
  const url = new URL(data)
  return createFilePart(target.version === 'v4' ? { type: 'url', url } : url, mediaType, filename)
}

function toBytesPart(
  data: string,
  mediaType: string,
  filename: string | undefined,
  { version }: FileTarget,
): PromptPart {
  return createFilePart(version === 'v4' ? { type: 'data', data } : data, mediaType, filename)
}

/** A file that the provider holds. */
function toStoredPart(
  id: string,
  filename: string | undefined,
  { version, provider, modelId }: FileTarget,
): PromptPart {
  const mediaType = getMediaType(filename)
  if (version === 'v4')
    return createFilePart({ type: 'reference', reference: { [provider]: id } }, mediaType, filename)
  // The packages of these versions know OpenAI's ids by how they begin.
  if (provider === 'openai' || provider === 'azure') return createFilePart(id, mediaType, filename)
  throw unsupportedContentError(
    `${modelId} knows no files by their id (${id}): pass the file itself as file_data.`,
  )
}

function createFilePart(data: FileData, mediaType: string, filename: string | undefined): PromptPart {
  return { type: 'file', mediaType, data, ...(filename !== undefined && { filename }) }
}

const mediaTypes: Readonly<Record<string, string>> = {
  pdf: 'application/pdf',
  txt: 'text/plain',
  md: 'text/markdown',
  csv: 'text/csv',
  html: 'text/html',
  json: 'application/json',
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
  mp3: 'audio/mpeg',
  wav: 'audio/wav',
  mp4: 'video/mp4',
}

/** By the end of its name; a document without one is most often a PDF, which is what every provider reads. */
function getMediaType(filename: string | undefined): string {
  const [, end = ''] = /\.(\w+)$/.exec(filename ?? '') ?? []
  return mediaTypes[end.toLowerCase()] ?? 'application/pdf'
}

function describeKind(mediaType: string): string {
  return mediaType.startsWith('image/') ? 'picture' : 'file'
}

/** As the specification has it: patterns are of addresses in lower case, kinds may be `image/*` or all of them. */
function canFetch(urls: SupportedUrls, mediaType: string, url: string): boolean {
  const [kind] = mediaType.split('/')
  return Object.entries(urls).some(([pattern, addresses]) => {
    const fits =
      pattern === '*' ||
      pattern === '*/*' ||
      pattern === mediaType ||
      pattern === `${kind}/*` ||
      (mediaType.endsWith('/*') && pattern.startsWith(`${kind}/`))
    return fits && addresses.some((address) => address.test(url.toLowerCase()))
  })
}

function encodeText(text: string): string {
  // A sign % that begins nothing stands for itself.
  const plain = text.replaceAll(/(%[\da-f]{2})+|%/gi, decodePercent)
  return toBase64(new TextEncoder().encode(plain))
}

function unsupportedContentError(message: string): ModelError {
  return new ModelError(unsupportedContent(message))
}
