import { createWordStart, type Finder, redactAll } from './finder.js'
import { scrubEvidence } from '../../../guards/lib/words.js'

type Pattern = Omit<Finder, 'kind'>

/**
 * Finds a key with a known prefix, also across line breaks. The pattern starts with the prefix and checks the boundary
 * afterwards, because engines find literals quickly. Text that matches `behind` must not follow the key.
 */
function findKey(start: string, rest: string, behind?: string): Pattern {
  const end = behind === undefined ? '' : `(?!${behind})`
  return {
    pattern: new RegExp(`(?:${start})(?<=${createWordStart()}(?:${start}))(?:${rest})${end}`, 'g'),
    reads: 'unbroken',
    wrapped: {
      pattern: new RegExp(`(?:${start})(?:${rest})`, 'g'),
      start: new RegExp(createWordStart(), 'y'),
      end: new RegExp(end, 'y'),
    },
  }
}

/** Accepts a match that contains all of these. */
const withAll =
  (...parts: RegExp[]) =>
  (match: string): number =>
    parts.every((part) => part.test(match)) ? match.length : 0

const { raw } = String

/**
 * Patterns of secrets from the documentation of their issuers, ordered from specific to general. All run in linear
 * time. Formats without a recognizable end match as soon as they are long enough, because streamed text reveals a
 * secret piece by piece.
 */
const patterns = {
  /** RFC 7468; RFC 9580 §6.2 for PGP. A key without an end extends to the end of the text. */
  private_key: {
    pattern:
      /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
  },
  /**
   * RFC 7519: base64url of a JSON header and JSON claims; RFC 7515 for the signature. The pattern also matches a
   * header without claims, which is then rejected, because restarting at each `eyJ` would take quadratic time.
   */
  jwt: { ...findKey('eyJ', raw`[\w-]{5,}(?:\.eyJ[\w-]{5,}(?:\.[\w-]*)?)?`), accepts: withAll(/\./) },
  /** docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, "Understanding unique ID prefixes" */
  aws: [
    findKey('AKIA|ASIA', '[A-Z0-9]{16}', '[A-Za-z0-9]'),
    {
      pattern:
        /(?<prefix>aws_?secret_?access_?key\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
    },
  ],
  /** docs.github.com, "About authentication to GitHub", "GitHub's token formats" */
  github: [findKey('gh[opsur]_', raw`[A-Za-z0-9]{36}\w*`), findKey('github_pat_', raw`\w{22,}`)],
  /** docs.gitlab.com/security/tokens, "Token prefixes" */
  gitlab: findKey('gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|wt)-', raw`[\w-]{20}[\w.-]*`),
  /** platform.openai.com/docs/api-reference/authentication; many compatible services use the plain form too. */
  openai: [findKey('sk-(?:proj|svcacct|admin|None)-', raw`[\w-]{20,}`), findKey('sk-', '[A-Za-z0-9]{32,}')],
  /** docs.claude.com/en/api/admin-api: sk-ant-api03-…, sk-ant-admin01-… */
  anthropic: findKey('sk-ant-', raw`[\w-]{20,}`),
  /** openrouter.ai/docs/api-reference/authentication */
  openrouter: findKey('sk-or-v1-', '[0-9a-f]{40,}'),
  /** cloud.google.com/docs/authentication/api-keys; developers.google.com/identity/protocols/oauth2 */
  google: [
    findKey('AIza', raw`[\w-]{35}`),
    findKey(raw`ya29\.`, raw`[\w-]{20,}`),
    findKey('GOCSPX-', raw`[\w-]{28}`),
  ],
  /** docs.slack.dev/authentication/tokens; docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
  slack: [
    findKey(raw`xox[abeoprs](?:\.xox[bp])?-|xapp-\d-`, raw`[\w-]{10,}`),
    { pattern: /(?<prefix>hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/]{20,}/g },
  ],
  /** docs.stripe.com/keys; publishable keys (pk_) are not secret. docs.stripe.com/webhooks for whsec_ */
  stripe: [findKey('[sr]k_(?:live|test)_', '[A-Za-z0-9]{10,}'), findKey('whsec_', '[A-Za-z0-9+/]{24,}')],
  /** docs.npmjs.com/about-access-tokens; github.blog, "Announcing npm's new access token format" */
  npm: findKey('npm_', '[A-Za-z0-9]{36}'),
  /** pypi.org/help/#apitoken; the constant prefix of a macaroon for pypi.org or test.pypi.org. */
  pypi: findKey('pypi-AgE', raw`[\w-]{20,}`),
  /**
   * learn.microsoft.com/purview: "Azure storage account key", "Azure AD client secret", "Azure shared access signature"
   */
  azure: [
    { pattern: /(?<prefix>AccountKey=)[A-Za-z0-9+/]{40,88}={0,2}/gi },
    {
      pattern: new RegExp(raw`${createWordStart(raw`\w~.\-`)}[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])`, 'g'),
    },
    { pattern: /(?<prefix>[?&;]sig=)(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){30,}={0,2}/g },
  ],
  /** huggingface.co/docs/hub/security-tokens */
  huggingface: findKey('hf_', '[A-Za-z0-9]{30,}'),
  /** console.groq.com/docs/quickstart */
  groq: findKey('gsk_', '[A-Za-z0-9]{40,}'),
  /** docs.x.ai/docs/tutorial */
  xai: findKey('xai-', '[A-Za-z0-9]{40,}'),
  /** docs.perplexity.ai/getting-started */
  perplexity: findKey('pplx-', '[A-Za-z0-9]{40,}'),
  /** replicate.com/docs/topics/security/api-tokens */
  replicate: findKey('r8_', '[A-Za-z0-9]{37}'),
  /** docs.sendgrid.com/ui/account-and-settings/api-keys */
  sendgrid: findKey(raw`SG\.`, raw`[\w-]{22}\.[\w-]{43}`),
  /** twilio.com/docs/iam/api-keys */
  twilio: findKey('SK', '[0-9a-f]{32}', '[0-9a-f]'),
  /** core.telegram.org/bots/api#authorizing-your-bot */
  telegram: findKey(raw`\d{8,10}:AA`, raw`[\w-]{33}`, raw`[\w-]`),
  /** docs.digitalocean.com/reference/api/create-personal-access-token */
  digitalocean: findKey('do[opr]_v1_', '[0-9a-f]{64}'),
  /** shopify.dev/docs/apps/build/authentication-authorization/access-tokens */
  shopify: findKey('shp(?:at|ca|pa|ss)_', '[0-9a-fA-F]{32}'),
  /** docs.databricks.com/dev-tools/auth/pat */
  databricks: findKey('dapi', '[0-9a-f]{32}', '[0-9a-f]'),
  /** developer.hashicorp.com/vault/docs/concepts/tokens, "Token prefixes" */
  vault: findKey(raw`hv[sbr]\.`, raw`[\w-]{24,}`),
  /** RFC 6750 §2.1. Words have no digits. */
  bearer: { pattern: /(?<prefix>\bbearer\s{1,4})[\w.~+/-]{16,}=*/gi, accepts: withAll(/\d/) },
  /** RFC 3986 §3.2.1: scheme://user:password@host. Does not match passwords that were already removed from evidence. */
  url_password: { pattern: /(?<prefix>:\/\/[^\s/?#:@"']{0,256}:)(?!\[redacted\]@)[^\s/?#@"']{1,512}(?=@)/g },
  /** `api_key = …` and similar, with a value of at least 8 letters and digits. */
  assigned: {
    pattern:
      /(?<prefix>(?:(?:api|access|secret|private|account)[_-]?key|client[_-]?secret|(?:access|auth|refresh)[_-]?token|passw(?:or)?d|passphrase|pwd)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)[^\s"'\\,;&<>(){}[\]]{8,}/gi,
    accepts: withAll(/\d/, /[a-z]/i),
  },
} satisfies Record<string, Pattern | readonly Pattern[]>

/** Kinds of secrets with a recognizable form. */
export type SecretKind = keyof typeof patterns

export const secretKinds = Object.keys(patterns) as readonly SecretKind[]

export function createSecretFinders(kinds: readonly SecretKind[]): Finder[] {
  return kinds.flatMap((kind) =>
    [patterns[kind]].flat().map((pattern: Pattern) => ({ kind, reads: 'plainly' as const, ...pattern })),
  )
}

const finders = /* @__PURE__ */ createSecretFinders(secretKinds)

/** Removes what `secretsShield` finds and what guard evidence omits. If that fails, omits the whole text. */
export function scrubSecrets(text: string): string {
  const { text: rest, clean } = redactAll(finders, scrubEvidence(text), () => redacted)
  return clean ? rest : redacted
}

const redacted = '[redacted]'
