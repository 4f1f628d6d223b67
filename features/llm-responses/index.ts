/** Public face of the llm-responses pack: nothing but what it contributes to `LlmAdapters`. */
export {}
