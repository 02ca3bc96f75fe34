import type { MediaPart } from '../../machines/agent/messages.js'
import { toBase64 } from '../core/models/media.js'
import { ModelError } from '../core/models/provider.js'
import { unsupportedContent } from './ai-sdk-failure.js'
import type { SpecificationVersion } from './model-options.js'
import type { FileData, PromptPart } from './spec.js'
import { decodePercent } from '../core/base/text.js'

export type SupportedUrls = Readonly<Record<string, RegExp[]>>

export interface FileTarget {
  version: SpecificationVersion
  provider: string
  modelId: string
  urls: SupportedUrls
}

export function toFilePart(part: MediaPart, { version, provider, modelId, urls }: FileTarget): PromptPart {
  const filename = part.type === 'file' ? part.file.filename : undefined
  const create = (data: FileData, mediaType: string): PromptPart & { type: 'file' | 'reasoning-file' } => ({
    type: 'file',
    mediaType,
    data,
    ...(filename !== undefined && { filename }),
  })

  /** `data:` URLs and base64 data are sent unchanged. An address is sent only if the provider can fetch it. */
  function locate(data: string, mediaType: string) {
    const [start, type = '', base64] = /^data:([^,;]*)[^,]*?(;base64)?,/i.exec(data) ?? []
    if (start !== undefined) {
      const rest = data.slice(data.indexOf(',') + 1)
      return create(toFileData(base64 === undefined ? encodeText(rest) : rest, version), type || mediaType)
    }
    if (!/^https?:\/\//i.test(data)) return create(toFileData(data, version), mediaType)
    if (!URL.canParse(data)) throw unsupportedContentError(`${data} is not a valid address.`)
    const url = new URL(data)
    if (canFetch(urls, mediaType, data)) return create(toFileData(url, version), mediaType)
    const kind = mediaType.startsWith('image/') ? 'images' : 'files'
    const remedy = `Load the file and pass its data: data:${mediaType.replace('*', 'png')};base64,…`
    throw unsupportedContentError(`${modelId} cannot fetch ${kind} from ${url.host}. ${remedy}`)
  }

  switch (part.type) {
    case 'image_url': {
      const { url, detail } = part.image_url
      const options = detail && provider === 'openai' && { openai: { imageDetail: detail } }
      return { ...locate(url, 'image/*'), ...(options && { providerOptions: options }) }
    }
    case 'input_audio': {
      const { data, format } = part.input_audio
      return create(toFileData(data, version), format === 'mp3' ? 'audio/mpeg' : 'audio/wav')
    }
    default: {
      const { file_data: data, file_id: id = '' } = part.file
      const mediaType = getMediaType(filename)
      if (data !== undefined) return locate(data, mediaType)
      if (version === 'v4') return create({ type: 'reference', reference: { [provider]: id } }, mediaType)
      // Packages of these versions recognize OpenAI's ids by their prefix.
      if (provider === 'openai' || provider === 'azure') return create(id, mediaType)
      throw unsupportedContentError(
        `${modelId} does not support file ids (${id}). Pass the file itself as file_data.`,
      )
    }
  }
}

/** Data is plain in v2 and v3, and tagged in v4. */
export function toFileData(data: string | URL, version: SpecificationVersion): FileData {
  if (version !== 'v4') return data
  return typeof data === 'string' ? { type: 'data', data } : { type: 'url', url: data }
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
