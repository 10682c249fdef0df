import js from "@eslint/js";
import globals from "globals";

export default [
  { ignores: ["**/.venv/", "**/build/", "docs/"] },
  js.configs.recommended,
  {
    files: ["contrastive_lab/components/**/*.js"],
    languageOptions: { globals: globals.browser },
    rules: {
      eqeqeq: ["error", "always", { null: "ignore" }],
      "max-len": ["error", { code: 120 }],
      "no-shadow": "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
    },
  },
  { files: ["tests/js/**/*.js", "*.config.js"], languageOptions: { globals: globals.node } },
];
