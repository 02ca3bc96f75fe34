import { createWordStart, type Finder } from './finder.js'

/** Keys with a known prefix can be found across line breaks. Other keys end at a line break. */
const wrappedByPattern = new Map<RegExp, NonNullable<Finder['wrapped']>>()

/**
 * Creates the pattern of a key with a known prefix. The pattern starts with the prefix and checks the boundary
 * afterwards, because engines find literals quickly. Text that matches `behind` must not follow the key.
 */
function createKeyPattern(start: string, rest: string, behind?: string): RegExp {
  const end = behind === undefined ? '' : `(?!${behind})`
  const pattern = new RegExp(`(?:${start})(?<=${createWordStart()}(?:${start}))(?:${rest})${end}`, 'g')
  wrappedByPattern.set(pattern, {
    pattern: new RegExp(`(?:${start})(?:${rest})`, 'g'),
    start: new RegExp(createWordStart(), 'y'),
    end: new RegExp(end, 'y'),
  })
  return pattern
}

function hasDigit(match: string): number {
  return /\d/.test(match) ? match.length : 0
}

function hasDigitAndLetter(match: string): number {
  return /\d/.test(match) && /[a-z]/i.test(match) ? match.length : 0
}

function hasClaims(match: string): number {
  return match.includes('.') ? match.length : 0
}

type Pattern = Omit<Finder, 'kind'>

/**
 * Patterns of secrets from the documentation of their issuers, ordered from specific to general. All run in linear
 * time. Formats without a recognizable end match as soon as they are long enough, because streamed text reveals a
 * secret piece by piece.
 */
const patterns = {
  /** RFC 7468; RFC 9580 §6.2 for PGP. A key without an end extends to the end of the text. */
  private_key: [
    {
      pattern:
        /-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----[^]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    },
  ],
  /**
   * RFC 7519: base64url of a JSON header and JSON claims; RFC 7515 for the signature. The pattern also matches a
   * header without claims, which is then rejected, because restarting at each `eyJ` would take quadratic time.
   */
  jwt: [
    {
      pattern: createKeyPattern('eyJ', String.raw`[\w-]{5,}(?:\.eyJ[\w-]{5,}(?:\.[\w-]*)?)?`),
      accepts: hasClaims,
    },
  ],
  /** docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html, "Understanding unique ID prefixes" */
  aws: [
    { pattern: createKeyPattern('AKIA|ASIA', '[A-Z0-9]{16}', '[A-Za-z0-9]') },
    {
      pattern:
        /(?<prefix>aws_?secret_?access_?key\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])/gi,
    },
  ],
  /** docs.github.com, "About authentication to GitHub", "GitHub's token formats" */
  github: [
    { pattern: createKeyPattern('gh[opsur]_', String.raw`[A-Za-z0-9]{36}\w*`) },
    { pattern: createKeyPattern('github_pat_', String.raw`\w{22,}`) },
  ],
  /** docs.gitlab.com/security/tokens, "Token prefixes" */
  gitlab: [
    {
      pattern: createKeyPattern(
        'gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|soat|ffct|wt)-',
        String.raw`[\w-]{20}[\w.-]*`,
      ),
    },
  ],
  /** platform.openai.com/docs/api-reference/authentication; many compatible services use the plain form too. */
  openai: [
    { pattern: createKeyPattern('sk-(?:proj|svcacct|admin|None)-', String.raw`[\w-]{20,}`) },
    { pattern: createKeyPattern('sk-', '[A-Za-z0-9]{32,}') },
  ],
  /** docs.claude.com/en/api/admin-api: sk-ant-api03-…, sk-ant-admin01-… */
  anthropic: [{ pattern: createKeyPattern('sk-ant-', String.raw`[\w-]{20,}`) }],
  /** openrouter.ai/docs/api-reference/authentication */
  openrouter: [{ pattern: createKeyPattern('sk-or-v1-', '[0-9a-f]{40,}') }],
  /** cloud.google.com/docs/authentication/api-keys; developers.google.com/identity/protocols/oauth2 */
  google: [
    { pattern: createKeyPattern('AIza', String.raw`[\w-]{35}`) },
    { pattern: createKeyPattern(String.raw`ya29\.`, String.raw`[\w-]{20,}`) },
    { pattern: createKeyPattern('GOCSPX-', String.raw`[\w-]{28}`) },
  ],
  /** docs.slack.dev/authentication/tokens; docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
  slack: [
    { pattern: createKeyPattern(String.raw`xox[abeoprs](?:\.xox[bp])?-|xapp-\d-`, String.raw`[\w-]{10,}`) },
    { pattern: /(?<prefix>hooks\.slack\.com\/(?:services|workflows|triggers)\/)[\w/]{20,}/g },
  ],
  /** docs.stripe.com/keys; publishable keys (pk_) are not secret. docs.stripe.com/webhooks for whsec_ */
  stripe: [
    { pattern: createKeyPattern('[sr]k_(?:live|test)_', '[A-Za-z0-9]{10,}') },
    { pattern: createKeyPattern('whsec_', '[A-Za-z0-9+/]{24,}') },
  ],
  /** docs.npmjs.com/about-access-tokens; github.blog, "Announcing npm's new access token format" */
  npm: [{ pattern: createKeyPattern('npm_', '[A-Za-z0-9]{36}') }],
  /** pypi.org/help/#apitoken; the constant prefix of a macaroon for pypi.org or test.pypi.org. */
  pypi: [{ pattern: createKeyPattern('pypi-AgE', String.raw`[\w-]{20,}`) }],
  /**
   * learn.microsoft.com/purview: "Azure storage account key", "Azure AD client secret", "Azure shared access signature"
   */
  azure: [
    { pattern: /(?<prefix>AccountKey=)[A-Za-z0-9+/]{40,88}={0,2}/gi },
    {
      pattern: new RegExp(
        String.raw`${createWordStart(String.raw`\w~.\-`)}[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])`,
        'g',
      ),
    },
    { pattern: /(?<prefix>[?&;]sig=)(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){30,}={0,2}/g },
  ],
  /** huggingface.co/docs/hub/security-tokens */
  huggingface: [{ pattern: createKeyPattern('hf_', '[A-Za-z0-9]{30,}') }],
  /** console.groq.com/docs/quickstart */
  groq: [{ pattern: createKeyPattern('gsk_', '[A-Za-z0-9]{40,}') }],
  /** docs.x.ai/docs/tutorial */
  xai: [{ pattern: createKeyPattern('xai-', '[A-Za-z0-9]{40,}') }],
  /** docs.perplexity.ai/getting-started */
  perplexity: [{ pattern: createKeyPattern('pplx-', '[A-Za-z0-9]{40,}') }],
  /** replicate.com/docs/topics/security/api-tokens */
  replicate: [{ pattern: createKeyPattern('r8_', '[A-Za-z0-9]{37}') }],
  /** docs.sendgrid.com/ui/account-and-settings/api-keys */
  sendgrid: [{ pattern: createKeyPattern(String.raw`SG\.`, String.raw`[\w-]{22}\.[\w-]{43}`) }],
  /** twilio.com/docs/iam/api-keys */
  twilio: [{ pattern: createKeyPattern('SK', '[0-9a-f]{32}', '[0-9a-f]') }],
  /** core.telegram.org/bots/api#authorizing-your-bot */
  telegram: [
    { pattern: createKeyPattern(String.raw`\d{8,10}:AA`, String.raw`[\w-]{33}`, String.raw`[\w-]`) },
  ],
  /** docs.digitalocean.com/reference/api/create-personal-access-token */
  digitalocean: [{ pattern: createKeyPattern('do[opr]_v1_', '[0-9a-f]{64}') }],
  /** shopify.dev/docs/apps/build/authentication-authorization/access-tokens */
  shopify: [{ pattern: createKeyPattern('shp(?:at|ca|pa|ss)_', '[0-9a-fA-F]{32}') }],
  /** docs.databricks.com/dev-tools/auth/pat */
  databricks: [{ pattern: createKeyPattern('dapi', '[0-9a-f]{32}', '[0-9a-f]') }],
  /** developer.hashicorp.com/vault/docs/concepts/tokens, "Token prefixes" */
  vault: [{ pattern: createKeyPattern(String.raw`hv[sbr]\.`, String.raw`[\w-]{24,}`) }],
  /** RFC 6750 §2.1. Words have no digits. */
  bearer: [{ pattern: /(?<prefix>\bbearer\s{1,4})[\w.~+/-]{16,}=*/gi, accepts: hasDigit }],
  /** RFC 3986 §3.2.1: scheme://user:password@host. Does not match passwords that were already removed from evidence. */
  url_password: [
    { pattern: /(?<prefix>:\/\/[^\s/?#:@"']{0,256}:)(?!\[redacted\]@)[^\s/?#@"']{1,512}(?=@)/g },
  ],
  /** `api_key = …` and similar, with a value of at least 8 letters and digits. */
  assigned: [
    {
      pattern:
        /(?<prefix>(?:(?:api|access|secret|private|account)[_-]?key|client[_-]?secret|(?:access|auth|refresh)[_-]?token|passw(?:or)?d|passphrase|pwd)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)[^\s"'\\,;&<>(){}[\]]{8,}/gi,
      accepts: hasDigitAndLetter,
    },
  ],
} satisfies Record<string, readonly Pattern[]>

/** Kinds of secrets with a recognizable form. */
export type SecretKind = keyof typeof patterns

export const secretKinds = Object.keys(patterns) as readonly SecretKind[]

export function createSecretFinders(kinds: readonly SecretKind[]): Finder[] {
  return kinds.flatMap((kind) =>
    patterns[kind].map((pattern: Pattern) => {
      const lines = wrappedByPattern.get(pattern.pattern)
      return { kind, ...pattern, ...(lines ? { reads: 'unbroken', wrapped: lines } : { reads: 'plainly' }) }
    }),
  )
}
