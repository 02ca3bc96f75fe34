import { scrubEvidence } from '../../../guards/lib/words.js'
import { redactAll } from './finder.js'
import { createSecretFinders, secretKinds } from './secrets.js'

const finders = createSecretFinders(secretKinds)

/** Removes what `secretsShield` finds and what guard evidence omits. If that fails, omits the whole text. */
export function scrubSecrets(text: string): string {
  const { text: rest, clean } = redactAll(finders, scrubEvidence(text), () => redacted)
  return clean ? rest : redacted
}

const redacted = '[redacted]'
