import { configError } from '../core/base/errors.js'
import { type AddressPolicy, createAddressPolicy } from '../core/config/address-policy.js'
import { type AccessGrant, toSessionId } from './authorize.js'
import { invalidInputError } from './error-response.js'

/**
 * Maps a page's file id to the provider's file id.
 *
 * - `id`: the id sent by the page, at most 500 characters
 * - `session`: the session of the message
 * - `prefix`, `context`: the return value of `authorize`
 * - returns the provider's id, or null or undefined if this user may not use the file (400)
 *
 * @example
 * const uploads = new Map([['ann/report', 'file-8Jq2']]) // filled by the app's upload route
 * const fileIds: FileIds = (id, { prefix }) => uploads.get(`${prefix}/${id}`)
 */
export type FileIds = (
  id: string,
  at: { session: string; prefix: string; context: unknown },
) => FileId | Promise<FileId>

type FileId = string | null | undefined

export interface PageFileOptions {
  /**
   * Allowed hosts of `http:` and `https:` addresses, which the model's server fetches: `'public'`, names, addresses and
   * CIDR blocks. An empty list refuses all of them. Defaults to `['public']`.
   */
  fileAddresses?: readonly string[]
  /** Maps file ids from pages. By default, all file ids are refused. */
  fileIds?: FileIds
}

export type PageFiles = ReturnType<ReturnType<typeof createPageFiles>>

/** @throws {ConfigError} `invalid_config` */
export function createPageFiles(options: PageFileOptions) {
  const { fileIds, fileAddresses = ['public'] } = options
  const path = 'fileAddresses'
  if (!Array.isArray(fileAddresses) || !fileAddresses.every((entry) => typeof entry === 'string'))
    throw configError(
      "fileAddresses must be a list of strings, each of which is 'public', a host name, an address or a CIDR block.",
      path,
    )
  const hosts = fileAddresses.filter((entry) => entry !== 'public')
  const allowsPublic = fileAddresses.includes('public')
  const policy = createAddressPolicy(hosts, { allowsPublic, option: { path, of: 'handler options' } })
  if (fileIds !== undefined && typeof fileIds !== 'function')
    throw configError('fileIds must be a function: (id, { session }) => id.', 'fileIds')
  return (grant: AccessGrant, chatId: unknown) => ({
    /** The normalized address for the model, with a host that is allowed. @throws {UsageError} `invalid_input` */
    readAddress: (address: string, at: string): string => checkAddress(address, at, policy),
    readId: async (id: string, at: string): Promise<string> => {
      if (fileIds === undefined)
        throw invalidInputError(
          `${at} is a file id, which this server does not accept. Send the file as data, or send its address.`,
          at,
        )
      const session = toSessionId(grant, chatId)
      const { prefix, context } = grant
      const mapped = id.length <= 500 ? await fileIds(id, { session, prefix, context }) : null
      if (mapped === null || mapped === undefined)
        throw invalidInputError(`${at} does not identify a file that you may use.`, at)
      if (typeof mapped === 'string' && mapped !== '') return mapped
      throw configError('fileIds() must return a file id or null.', 'fileIds')
    },
  })
}

function checkAddress(address: string, at: string, policy: AddressPolicy): string {
  if (/^data:/i.test(address)) return address
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw invalidInputError(`${at} must be an http:, https: or data: address.`, at)
  if (url.username !== '' || url.password !== '')
    throw invalidInputError(`${at} must not contain a user name or password.`, at)
  if (!policy.allowsHost(url.hostname)) {
    const host = url.hostname.slice(0, 100)
    throw invalidInputError(`${at}: files from the host ${host} are not allowed. Send the file as data.`, at)
  }
  // Normalized, because another parser might read a different host from the original text.
  return url.href
}
