// Here, because a package is looked for from the file that asks for it.
export { createAnthropic } from '@ai-sdk/anthropic'
export { createGoogleGenerativeAI } from '@ai-sdk/google'
export { createOpenAI } from '@ai-sdk/openai'
export { createOpenAICompatible } from '@ai-sdk/openai-compatible'
