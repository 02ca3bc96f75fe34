import type { MediaPart } from '../../machines/agent/messages.js'
import { toBase64 } from '../core/models/media.js'
import { ModelError } from '../core/models/provider.js'
import type { SpecificationVersion } from './model.js'
import type { FileData, PromptPart } from './spec.js'
import { unescaped } from '../core/base/unescaped.js'

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
export function filePart(part: MediaPart, target: FileTarget): PromptPart {
  switch (part.type) {
    case 'image_url': {
      const { url, detail } = part.image_url
      const options = detail && target.provider === 'openai' ? { openai: { imageDetail: detail } } : null
      return { ...located(url, 'image/*', undefined, target), ...(options && { providerOptions: options }) }
    }
    case 'input_audio': {
      const { data, format } = part.input_audio
      return bytes(data, format === 'mp3' ? 'audio/mpeg' : 'audio/wav', undefined, target)
    }
    default: {
      const { file_data: data, file_id: id, filename } = part.file
      if (data !== undefined) return located(data, mediaTypeOf(filename), filename, target)
      return stored(id ?? '', filename, target)
    }
  }
}

/** `data:` and base64 are sent as they are, addresses where the provider fetches them. */
function located(
  data: string,
  mediaType: string,
  filename: string | undefined,
  target: FileTarget,
): PromptPart {
  const [start, type = '', base64] = /^data:([^,;]*)[^,]*?(;base64)?,/i.exec(data) ?? []
  if (start !== undefined) {
    const rest = data.slice(data.indexOf(',') + 1)
    return bytes(base64 === undefined ? encoded(rest) : rest, type || mediaType, filename, target)
  }
  if (!/^https?:\/\//i.test(data)) return bytes(data, mediaType, filename, target)
  if (!URL.canParse(data)) throw refused(`${data} is no address that could be fetched.`)
  if (!fetches(target.urls, mediaType, data)) {
    throw refused(
      `${target.modelId} fetches no ${kindOf(mediaType)} from ${new URL(data).host}. Load it, and pass its bytes: data:${mediaType.replace('*', 'png')};base64,…`,
    )
  }
  const url = new URL(data)
  return filed(target.version === 'v4' ? { type: 'url', url } : url, mediaType, filename)
}

function bytes(
  data: string,
  mediaType: string,
  filename: string | undefined,
  { version }: FileTarget,
): PromptPart {
  return filed(version === 'v4' ? { type: 'data', data } : data, mediaType, filename)
}

/** A file that the provider holds. */
function stored(
  id: string,
  filename: string | undefined,
  { version, provider, modelId }: FileTarget,
): PromptPart {
  const mediaType = mediaTypeOf(filename)
  if (version === 'v4')
    return filed({ type: 'reference', reference: { [provider]: id } }, mediaType, filename)
  // The packages of these versions know OpenAI's ids by how they begin.
  if (provider === 'openai' || provider === 'azure') return filed(id, mediaType, filename)
  throw refused(`${modelId} knows no files by their id (${id}): pass the file itself as file_data.`)
}

function filed(data: FileData, mediaType: string, filename: string | undefined): PromptPart {
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
function mediaTypeOf(filename: string | undefined): string {
  const [, end = ''] = /\.(\w+)$/.exec(filename ?? '') ?? []
  return mediaTypes[end.toLowerCase()] ?? 'application/pdf'
}

function kindOf(mediaType: string): string {
  return mediaType.startsWith('image/') ? 'picture' : 'file'
}

/** As the specification has it: patterns are of addresses in lower case, kinds may be `image/*` or all of them. */
function fetches(urls: SupportedUrls, mediaType: string, url: string): boolean {
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

function encoded(text: string): string {
  // A sign % that begins nothing stands for itself.
  const plain = text.replaceAll(/(%[\da-f]{2})+|%/gi, unescaped)
  return toBase64(new TextEncoder().encode(plain))
}

function refused(message: string): ModelError {
  return new ModelError({ kind: 'fatal', code: 'unsupported_content', message })
}
