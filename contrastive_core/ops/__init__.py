"""Operations on rows: similarity, tiled log-sum-exp, nearest neighbors."""
