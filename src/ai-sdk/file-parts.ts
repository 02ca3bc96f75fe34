import type { MediaPart } from '../../machines/agent/messages.js'
import { toBase64 } from '../core/models/media.js'
import { ModelError } from '../core/models/provider.js'
import { unsupportedContent } from './ai-sdk-failure.js'
import type { SpecificationVersion } from './model-options.js'
import type { FileData, PromptPart } from './spec.js'
import { decodePercent } from '../core/base/text.js'

/** The addresses that the provider can fetch, by media type. */
export type SupportedUrls = Readonly<Record<string, RegExp[]>>

export interface FileTarget {
  version: SpecificationVersion
  provider: string
  modelId: string
  urls: SupportedUrls
}

/** Converts an image, audio or document to the format of the model's version. */
export function toFilePart(part: MediaPart, target: FileTarget): PromptPart {
  switch (part.type) {
    case 'image_url': {
      const { url, detail } = part.image_url
      const options = detail && target.provider === 'openai' && { openai: { imageDetail: detail } }
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

/** `data:` URLs and base64 data are sent unchanged. An address is sent only if the provider can fetch it. */
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
  if (!URL.canParse(data)) throw unsupportedContentError(`${data} is not a valid address.`)
  if (!canFetch(target.urls, mediaType, data)) {
    const kind = mediaType.startsWith('image/') ? 'images' : 'files'
    const remedy = `Load the file and pass its data: data:${mediaType.replace('*', 'png')};base64,…`
    throw unsupportedContentError(
      `${target.modelId} cannot fetch ${kind} from ${new URL(data).host}. ${remedy}`,
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

/** A file that is stored at the provider. */
function toStoredPart(
  id: string,
  filename: string | undefined,
  { version, provider, modelId }: FileTarget,
): PromptPart {
  const mediaType = getMediaType(filename)
  if (version === 'v4')
    return createFilePart({ type: 'reference', reference: { [provider]: id } }, mediaType, filename)
  // Packages of these versions recognize OpenAI's ids by their prefix.
  if (provider === 'openai' || provider === 'azure') return createFilePart(id, mediaType, filename)
  throw unsupportedContentError(
    `${modelId} does not support file ids (${id}). Pass the file itself as file_data.`,
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

/** Derives the media type from the file extension. Defaults to PDF, which every provider supports. */
function getMediaType(filename: string | undefined): string {
  const [, extension = ''] = /\.(\w+)$/.exec(filename ?? '') ?? []
  return mediaTypes[extension.toLowerCase()] ?? 'application/pdf'
}

/** As in the specification, address patterns are lower case, and media types can be wildcards. */
function canFetch(urls: SupportedUrls, mediaType: string, url: string): boolean {
  const [kind] = mediaType.split('/')
  const all = ['*', '*/*', mediaType, `${kind}/*`]
  return Object.entries(urls).some(([pattern, addresses]) => {
    const fits = all.includes(pattern) || (mediaType.endsWith('/*') && pattern.startsWith(`${kind}/`))
    return fits && addresses.some((address) => address.test(url.toLowerCase()))
  })
}

function encodeText(text: string): string {
  // An invalid % sequence is kept.
  const plain = text.replaceAll(/(%[\da-f]{2})+|%/gi, decodePercent)
  return toBase64(new TextEncoder().encode(plain))
}

const unsupportedContentError = (message: string): ModelError => new ModelError(unsupportedContent(message))
