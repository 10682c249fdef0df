"""The app: all of Streamlit."""
