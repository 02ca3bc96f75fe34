/** Models of the AI SDK as models of agents. Types alone: the provider's package is yours to install. */
export { languageModel } from './language-model.js'
export type { AiSdkModel, SpecificationVersion } from './ai-sdk-model.js'
export type { LanguageModelOptions } from './language-model-options.js'
