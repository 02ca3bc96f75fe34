import { ConfigError, UsageError } from '../core/base/errors.js'
import { type AddressPolicy, createAddressPolicy } from '../core/config/address-policy.js'
import { type AccessGrant, toSessionId } from './authorize.js'

/**
 * Maps a file id of a page to a file id of the provider.
 *
 * - `id`: the id that the page sent, at most 500 characters
 * - `session`: the id of the session that the message is for; `prefix`, `context`: what `authorize` returned
 * - returns the provider's id; null or undefined for an id that this user may not use (400)
 *
 * @example
 * const uploads = new Map([['ann/report', 'file-8Jq2']]) // filled where the app takes uploads
 * const fileIds: FileIds = (id, { prefix }) => uploads.get(`${prefix}/${id}`)
 */
export type FileIds = (
  id: string,
  at: { session: string; prefix: string; context: unknown },
) => FileId | Promise<FileId>

type FileId = string | null | undefined

/** Which files the messages of pages may refer to. */
export interface PageFileOptions {
  /**
   * Hosts of `http:` and `https:` addresses: `'public'`, names, addresses and CIDR blocks. The model's server fetches these
   * addresses. An empty list refuses all of them. Default: `['public']`.
   */
  fileAddresses?: readonly string[]
  /** Default: every file id of a page is refused. */
  fileIds?: FileIds
}

const maxIdLength = 500

/** Checks the files that the message of one request refers to. */
export interface PageFiles {
  /**
   * The address as the model gets it: a `data:` address unchanged, any other address as its host was checked.
   * @throws {UsageError} `invalid_input`
   */
  readAddress(address: string, at: string): string
  /**
   * The provider's id of a file.
   * @throws {UsageError} `invalid_input`
   */
  readId(id: string, at: string): Promise<string>
}

/**
 * Creates the file check of each request from the options of a handler.
 * @throws {ConfigError} `invalid_config`
 */
export function createPageFiles(
  options: PageFileOptions,
): (grant: AccessGrant, chatId: unknown) => PageFiles {
  const { fileIds } = options
  const policy = readPolicy(options)
  if (fileIds !== undefined && typeof fileIds !== 'function')
    throw new ConfigError('invalid_config', 'fileIds must be a function: (id, { session }) => id.', 'fileIds')
  return (grant, chatId) => ({
    readAddress: (address, at) => checkAddress(address, at, policy),
    readId: (id, at) => {
      if (fileIds === undefined)
        throw invalidInputError(
          `${at}: file ids are not accepted here. Send the file as data, or its address.`,
          at,
        )
      return mapId(fileIds, id, at, { grant, session: toSessionId(grant, chatId) })
    },
  })
}

function readPolicy({ fileAddresses = ['public'] }: PageFileOptions): AddressPolicy {
  const path = 'fileAddresses'
  if (!Array.isArray(fileAddresses) || !fileAddresses.every((entry) => typeof entry === 'string')) {
    const sentence = "fileAddresses must be a list of 'public', host names, addresses and CIDR blocks."
    throw new ConfigError('invalid_config', sentence, path)
  }
  return createAddressPolicy(
    fileAddresses.filter((entry) => entry !== 'public'),
    { allowsPublic: fileAddresses.includes('public'), option: { path, of: 'handler options' } },
  )
}

function checkAddress(address: string, at: string, policy: AddressPolicy): string {
  if (/^data:/i.test(address)) return address
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw invalidInputError(`${at} must be an address with http:, https: or data:.`, at)
  if (url.username !== '' || url.password !== '')
    throw invalidInputError(`${at} must have no name or password in it.`, at)
  if (!policy.allowsHost(url.hostname)) {
    throw invalidInputError(
      `${at} names the host ${url.hostname.slice(0, 100)}, from which files are not taken here. Send the file as data.`,
      at,
    )
  }
  // The normalised address: another parser could find another host in the original text.
  return url.href
}

async function mapId(
  fileIds: FileIds,
  id: string,
  at: string,
  { grant: { prefix, context }, session }: { grant: AccessGrant; session: string },
): Promise<string> {
  const mapped = id.length <= maxIdLength ? await fileIds(id, { session, prefix, context }) : null
  if (mapped === null || mapped === undefined)
    throw invalidInputError(`${at} is the id of no file that may be used here.`, at)
  if (typeof mapped === 'string' && mapped !== '') return mapped
  throw new ConfigError('invalid_config', 'fileIds() must return the id of a file, or null.', 'fileIds')
}

function invalidInputError(message: string, at: string): UsageError {
  return new UsageError('invalid_input', message, at)
}
